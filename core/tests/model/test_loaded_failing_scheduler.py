"""A scheduler that raises: every request is still completed exactly once."""

from __future__ import annotations

import queue
import threading
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import ask, config_of
from core.tests.toys.waiting import wait_until
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import CallbackSink, InferRequest

DYNAMIC = "dynamic_batching {}"


def raising(method: str) -> type[DirectScheduler]:
    """Return a scheduler whose `method` raises once after a request "bad" was enqueued."""

    def fail(self: Any, *arguments: Any) -> Any:
        if Raising.bad:
            Raising.bad = False
            raise RuntimeError(f"no {method} today")
        return getattr(DirectScheduler, method)(self, *arguments)

    class Raising(DirectScheduler):
        bad: ClassVar[bool] = False

        def enqueue(self, request: InferRequest) -> None:
            Raising.bad = request.id == "bad"
            super().enqueue(request)

        def released(self, request: InferRequest, reschedule: bool) -> None:
            """Override the method, so that it is called."""

    setattr(Raising, method, fail)
    return Raising


@pytest.mark.parametrize("method", ["ready", "expire"])
def test_accepted_requests_are_failed_by_the_model(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler, scheduler=raising(method)) as server:
        recorder.wait(ask(server.engine, recorder, "m", [[1]]))
        bad = ask(server.engine, recorder, "m", [[1]], id="bad")
        ((response,),) = recorder.wait(bad)
        assert response.error is not None
        assert "error id" in response.error.message
        assert server.engine.gauges()["m", "1"].pending == 0
        good = ask(server.engine, recorder, "m", [[1]])
        ((response,),) = recorder.wait(good)
        assert response.error is None
    recorder.check(bad, good)
    assert f"no {method} today" in caplog.text


@pytest.mark.parametrize("method", ["ready", "released"])
def test_a_response_is_sent_although_the_scheduler_fails(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    recorder, gate = RecordingSink(), Gate()
    scheduler = raising(method)
    with one_model(
        model_repository,
        gated(gate),
        scheduler=scheduler,
        config=config_of("toy", batch=4, instances=2, more=DYNAMIC),
    ) as server:
        request = ask(server.engine, recorder, "m", [[1]])
        gate.wait_for(1)
        scheduler.bad = True
        gate.open()
        ((response,),) = recorder.wait(request)
        assert response.error is None
        wait_until(lambda: f"no {method} today" in caplog.text)  # after the response
    recorder.check(request)


def test_a_request_during_failure_handling_is_executed(model_repository: ModelRepository) -> None:
    class RaisingOnce(DirectScheduler):
        """Raises once, on the thread of the instance."""

        raises_next = True

        def ready(self, instance: int, now_ns: int) -> bool | int:
            if self.raises_next and threading.current_thread() is not threading.main_thread():
                self.raises_next = False
                raise RuntimeError("not today")
            return super().ready(instance, now_ns)

    recorder, first = RecordingSink(), RecordingSink()
    again: queue.SimpleQueue[InferRequest] = queue.SimpleQueue()
    first.sink = CallbackSink(lambda *_: again.put(ask(server.engine, recorder, "m", [[1]])))
    RaisingOnce.raises_next = False
    with one_model(model_repository, Doubler, scheduler=RaisingOnce) as server:
        RaisingOnce.raises_next = True
        ask(server.engine, first, "m", [[1]])
        ((response,),) = recorder.wait(again.get(timeout=10))
        assert response.error is None
