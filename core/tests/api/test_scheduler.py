from __future__ import annotations

import pytest

from tritonpy.api.scheduler import Scheduler
from tritonpy.errors import Internal
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest


class OnlyEnqueue(Scheduler):
    def enqueue(self, request: InferRequest) -> None:
        """Take it and forget it."""


def test_a_scheduler_needs_no_more_than_enqueue_as_long_as_it_has_no_instances() -> None:
    scheduler = OnlyEnqueue(None)
    request = InferRequest("m", {}, Witness().sink)
    scheduler.enqueue(request)
    scheduler.cancel(request)
    scheduler.released(request, reschedule=False)
    scheduler.instances_changed([])
    scheduler.stop()
    assert (scheduler.expire(0), scheduler.pending()) == (None, ())
    assert not request.answered


@pytest.mark.parametrize("method", ["ready", "take"])
def test_one_with_instances_is_told_what_it_lacks(method: str) -> None:
    with pytest.raises(NotImplementedError, match=f"OnlyEnqueue must define {method}"):
        getattr(OnlyEnqueue(None), method)(0, 0)


def test_handing_back_is_refused_unless_the_scheduler_knows_it() -> None:
    witness = Witness()
    request = InferRequest("m", {}, witness.sink)
    OnlyEnqueue(None).released(request, reschedule=True)
    (answer,) = witness.answers(request)
    assert isinstance(answer.error, Internal)
    assert answer.error.message.startswith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE")
