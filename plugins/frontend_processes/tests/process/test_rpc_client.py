from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from plugins.frontend_processes.tests.linked import linked
from tritonpy_engine_rpc.remote_metrics import RemoteMetrics, ServerLink
from tritonpy_metrics import MetricKind
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types.errors import InvalidArgument, Unavailable


def test_threads_and_the_loop_call_at_the_same_time() -> None:
    with ToyEngine() as toy, linked(toy) as (_, end), ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(end.engine.model_metadata, "identity") for _ in range(20)]
        for _ in range(20):
            assert end.thread.do(end.engine.server_metadata) == toy.server_metadata()
        assert {each.result(20).name for each in calls} == {"identity"}


def test_an_error_keeps_its_class_and_retry_time(monkeypatch: pytest.MonkeyPatch) -> None:
    error = Unavailable("later")
    error.retry_after_s = 4.0
    with ToyEngine() as toy, linked(toy) as (_, end):

        def refuse() -> bool:
            raise error

        monkeypatch.setattr(toy, "is_ready", refuse)
        with pytest.raises(Unavailable, match="later") as raised:
            end.engine.is_ready()
        assert raised.value.retry_after == "4"
        with pytest.raises(InvalidArgument):
            end.thread.do(lambda: end.engine.model_config("nobody"))


def test_metrics_of_frontends_are_counted_by_the_engine_s_process() -> None:
    with ToyEngine() as toy, linked(toy) as (engine, end):
        metrics = RemoteMetrics(ServerLink(end.rpc.call, end.rpc.notify))
        counter = metrics.family("refused", "Refused", MetricKind.COUNTER).metric({"api": "x"})
        counter.increment(2)
        end.thread.do(lambda: counter.increment(3))
        assert counter.value() == 5
        [family] = engine.metrics.snapshot()
        assert family.metrics[0].value == 5


def test_a_call_that_cannot_be_sent_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):

        def fail(*_arguments: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(end.connection, "send", fail)
            with pytest.raises(OSError, match="No space"):
                end.engine.is_live()
        assert end.engine.is_live()
