from __future__ import annotations

import pytest

from core.tests.toys.doubler import Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import ask
from tritonpy.runners.local import LocalRunner
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest


def test_the_runner_is_told_of_a_cancelled_request_that_an_instance_holds(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness, gate, told = Witness(), Gate(), list[InferRequest]()
    monkeypatch.setattr(LocalRunner, "cancelled", lambda _runner, request: told.append(request))
    with one_model(model_repository, gated(gate)) as server:
        running, waiting = (ask(server.engine, witness, "m", [[number]]) for number in (1, 2))
        gate.wait_for(1)
        waiting.cancel()
        assert told == []
        running.cancel()
        assert told == [running]
        gate.open()
        witness.wait(running, waiting)
        running.cancel()
        assert told == [running]
