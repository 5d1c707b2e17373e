from __future__ import annotations

import pytest

from tritonpy.api.scheduler import Scheduler
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest
from tritonpy_types.errors import Internal


class OnlyEnqueue(Scheduler):
    def enqueue(self, request: InferRequest) -> None:
        """Do nothing."""


def test_a_scheduler_without_instances_needs_only_enqueue() -> None:
    scheduler = OnlyEnqueue(None)
    request = InferRequest("m", {}, RecordingSink().sink)
    scheduler.enqueue(request)
    scheduler.cancel(request)
    scheduler.released(request, reschedule=False)
    scheduler.instances_changed([])
    scheduler.stop()
    assert (scheduler.expire(0), scheduler.pending()) == (None, ())
    assert not request.finished


@pytest.mark.parametrize("method", ["ready", "take"])
def test_a_scheduler_with_instances_must_define_ready_and_take(method: str) -> None:
    with pytest.raises(NotImplementedError, match=f"OnlyEnqueue must define {method}"):
        getattr(OnlyEnqueue(None), method)(0, 0)


def test_rescheduling_fails_unless_the_scheduler_supports_it() -> None:
    recorder = RecordingSink()
    request = InferRequest("m", {}, recorder.sink)
    OnlyEnqueue(None).released(request, reschedule=True)
    (answer,) = recorder.responses(request)
    assert isinstance(answer.error, Internal)
    assert answer.error.message.startswith(
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"
    )
