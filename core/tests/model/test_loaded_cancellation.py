from __future__ import annotations

import pytest

from core.tests.toys.doubler import Gate, gated
from core.tests.toys.one_model import one_model
from core.tests.toys.serving import ask
from tritonpy.runners.local import LocalRunner
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest


def test_the_runner_is_notified_of_a_cancelled_running_request(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, gate, cancelled = RecordingSink(), Gate(), list[InferRequest]()
    monkeypatch.setattr(
        LocalRunner, "cancelled", lambda _runner, request: cancelled.append(request)
    )
    with one_model(model_repository, gated(gate)) as server:
        running, waiting = (ask(server.engine, recorder, "m", [[number]]) for number in (1, 2))
        gate.wait_for(1)
        waiting.cancel()
        assert cancelled == []
        running.cancel()
        assert cancelled == [running]
        gate.open()
        recorder.wait(running, waiting)
        running.cancel()
        assert cancelled == [running]
