"""The lifetime of a loaded version and of its requests."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from typing import Any

import numpy as np
import pluggy
import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import DYNAMIC, EXPLICIT, one_model
from core.tests.toys.serving import (
    ToyPlugin,
    ask,
    config_of,
    numbers,
    request_of,
    serving,
    toy_plugins,
)
from tritonpy.plugins import install_command
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import CallbackSink, InferRequest, Tensor
from tritonpy_types.errors import NotFound, Unavailable


def test_reloading_and_unloading_under_load_loses_no_request(
    model_repository: ModelRepository,
) -> None:
    recorder = RecordingSink()
    config = config_of("toy", batch=4, instances=2, more=DYNAMIC)
    with one_model(model_repository, Doubler, config=config, control=EXPLICIT) as server:
        sent: list[InferRequest] = []
        stop = threading.Event()

        def produce() -> None:
            while not stop.is_set():
                request = request_of(recorder, "m", [[1]])
                try:
                    server.engine.infer(request)
                except NotFound:  # between an unload and the next load
                    continue
                sent.append(request)
                if len(sent) % 8 == 0:
                    recorder.wait(request)

        threads = [threading.Thread(target=produce, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(12):
            if number % 3 == 2:
                server.engine.unload_model("m")
            before = len(sent)
            model_repository.add("m", config + f'metric_tags {{ key: "load" value: "{number}" }}')
            server.engine.load_model("m")
            assert server.engine.gauges()["m", "1"].tags == {"load": str(number)}
            while len(sent) < before + 10:
                recorder.wait(ask(server.engine, recorder, "m", [[1]]))
        stop.set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        responses = recorder.wait(*sent)
    assert all(response.error is None for each in responses for response in each)
    recorder.check(*sent)


def test_the_old_version_finishes_its_requests_while_the_new_one_serves(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate), control=EXPLICIT) as server:
        old = [ask(server.engine, recorder, "m", [[number]]) for number in range(3)]
        gate.wait_for(1)
        model_repository.add(
            "m", config_of("toy", batch=4, more=f'{DYNAMIC} metric_tags {{ key: "a" value: "b" }}')
        )
        server.engine.load_model("m")
        new = ask(server.engine, recorder, "m", [[9]])
        gate.wait_for(2)
        assert gate.arrived[1][1].requests == [new]
        gate.open()
        assert [numbers(each) for each in recorder.wait(*old, new)] == [[[0]], [[2]], [[4]], [[18]]]
    recorder.check(*old, new)


def test_waiting_requests_are_failed_at_the_exit_timeout(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with one_model(model_repository, gated(gate)) as server:
        running, waiting = (ask(server.engine, recorder, "m", [[number]]) for number in (1, 2))
        gate.wait_for(1)
        assert server._repository.stop(0) is False
        with pytest.raises(Unavailable, match="Exit timeout expired"):
            numbers(*recorder.wait(waiting))
        gate.open()
        assert numbers(*recorder.wait(running)) == [[2]]
    assert server._repository.stop(10) is True
    assert len(gate.arrived) == 1  # failed requests are not executed
    recorder.check(running, waiting)


def test_requests_cause_no_hook_calls(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, calls = RecordingSink(), []
    call = pluggy.HookCaller.__call__

    def counted(caller: pluggy.HookCaller, **arguments: object) -> Any:
        calls.append(caller.name)
        return call(caller, **arguments)

    monkeypatch.setattr(pluggy.HookCaller, "__call__", counted)
    with one_model(model_repository, Doubler) as server:
        assert calls == ["tritonpy_model_loaded", "tritonpy_server_started"]
        calls.clear()
        recorder.wait(*[ask(server.engine, recorder, "m", [[number]]) for number in range(100)])
        assert calls == []


@pytest.mark.parametrize(("value", "deadline_ns"), [(1, 0), (13, 0), (1, 1 << 62)])
def test_buffers_of_a_completed_request_are_freed_without_a_garbage_collection(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch, value: int, deadline_ns: int
) -> None:
    monkeypatch.setattr(
        logging.getLogger("tritonpy.model"), "disabled", True
    )  # a stored log record would keep the exception alive
    completed, freed = threading.Event(), threading.Event()
    sink = CallbackSink(lambda request, response: completed.set())
    with one_model(model_repository, Doubler) as server:
        gc.disable()
        try:
            array = np.array([[value]], np.int32)
            weakref.finalize(array, freed.set)
            tensor = Tensor("IN", "INT32", (1, 1), array)
            server.engine.infer(InferRequest("m", {"IN": tensor}, sink, deadline_ns=deadline_ns))
            assert completed.wait(10)
            del array, tensor
            assert freed.wait(10)
        finally:
            gc.enable()


def test_a_sequence_model_without_its_plugin_gives_an_install_command(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", batch=4, more="sequence_batching {}"))
    with serving(
        model_repository, toy_plugins(ToyPlugin({"toy": Doubler})), exit_on_error=False
    ) as server:
        assert install_command("tritonpy-batching-sequence") in server.failures["m"].message
