"""A scheduler that raises in the middle of what the model does: each request is answered once all the same."""

from __future__ import annotations

import queue
import threading
from typing import Any, ClassVar

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import ask, config_of
from tritonpy.direct import DirectScheduler
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import CallbackSink, InferRequest

DYNAMIC = "dynamic_batching {}"


def raising(method: str) -> type[DirectScheduler]:
    """Return a scheduler whose `method` raises as long as a request with the id "bad" is known to it."""

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
            """Say that releases are of interest."""

    setattr(Raising, method, fail)
    return Raising


@pytest.mark.parametrize("method", ["ready", "expire"])
def test_who_was_taken_before_the_failure_is_answered_by_the_model_alone(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    witness = Witness()
    with one_model(model_repository, Doubler, scheduler=raising(method)) as server:
        witness.wait(ask(server.engine, witness, "m", [[1]]))
        bad = ask(server.engine, witness, "m", [[1]], id="bad")
        ((answer,),) = witness.wait(bad)
        assert answer.error is not None
        assert "incident" in answer.error.message
        assert server.engine.gauges()["m", "1"].pending == 0
        good = ask(server.engine, witness, "m", [[1]])
        ((answer,),) = witness.wait(good)
        assert answer.error is None
    witness.check(bad, good)
    assert f"no {method} today" in caplog.text


@pytest.mark.parametrize("method", ["ready", "released"])
def test_an_answer_leaves_though_the_scheduler_fails_to_take_note_of_it(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    witness, gate = Witness(), Gate()
    scheduler = raising(method)
    with one_model(
        model_repository, gated(gate), scheduler=scheduler, config=config_of("toy", batch=4, instances=2, more=DYNAMIC)
    ) as server:
        request = ask(server.engine, witness, "m", [[1]])
        gate.wait_for(1)
        scheduler.bad = True
        gate.open()
        ((answer,),) = witness.wait(request)
        assert answer.error is None
    witness.check(request)
    assert f"no {method} today" in caplog.text


def test_who_comes_while_the_failure_is_answered_is_not_left_waiting(model_repository: ModelRepository) -> None:
    class Stumbling(DirectScheduler):
        """Raises once, when the instance asks."""

        stumbles = True

        def ready(self, instance: int, now_ns: int) -> bool | int:
            if self.stumbles and threading.current_thread() is not threading.main_thread():
                self.stumbles = False
                raise RuntimeError("not today")
            return super().ready(instance, now_ns)

    witness, first = Witness(), Witness()
    again: queue.SimpleQueue[InferRequest] = queue.SimpleQueue()
    first.sink = CallbackSink(lambda *_: again.put(ask(server.engine, witness, "m", [[1]])))
    Stumbling.stumbles = False
    with one_model(model_repository, Doubler, scheduler=Stumbling) as server:
        Stumbling.stumbles = True
        ask(server.engine, first, "m", [[1]])
        ((answer,),) = witness.wait(again.get(timeout=10))
        assert answer.error is None
