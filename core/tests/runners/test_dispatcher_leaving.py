"""An instance that is to go: it gets nothing but what is bound to it, and is told when that is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from core.tests.runners.test_dispatcher_without_threads import Hall, Told
from tritonpy.runners.slot import Slot
from tritonpy.types import InferRequest, InferResponse


@pytest.fixture
def hall() -> Iterator[Hall]:
    it = Hall()
    yield it
    it.timer.stop()


def answer(hall: Hall, request: InferRequest) -> None:
    """Do what a model does when `request` gets its final answer."""
    with hall.dispatcher.lock:
        request.answered = InferResponse(()).final
        hall.dispatcher.left(request, reschedule=False)


def test_an_idle_instance_is_rung_at_once_and_gets_nothing_more(hall: Hall) -> None:
    slot = Told(0)
    assert hall.take(slot) is None
    hall.dispatcher.leave(slot)
    assert (slot.rings, slot.gone, slot.idle) == (1, True, False)
    hall.enqueue()
    assert hall.take(slot) is None
    assert hall.dispatcher.take(slot, 8) is None
    assert not hall.dispatcher.wants(slot)


def test_what_comes_goes_to_those_that_stay(hall: Hall) -> None:
    going, staying = Told(0), Told(1)
    assert hall.take(going) is None
    assert hall.take(staying) is None
    hall.dispatcher.leave(going)
    hall.enqueue()
    assert (going.rings, staying.rings) == (1, 1)
    assert len(hall.take(staying) or ()) == 1


def test_one_that_holds_requests_is_done_with_the_last_answer(hall: Hall) -> None:
    slot = Told(0)
    requests = [hall.enqueue(), hall.enqueue()]
    assert hall.take(slot) == [requests[0]]
    assert hall.take(slot) == [requests[1]]
    assert hall.take(slot) is None
    hall.dispatcher.leave(slot)
    answer(hall, requests[0])
    assert (slot.gone, slot.rings) == (False, 0)
    answer(hall, requests[1])
    assert (slot.gone, slot.rings) == (True, 1)


def test_one_to_which_something_is_bound_gets_that_and_is_done_when_the_scheduler_says_so(hall: Hall) -> None:
    slot, bound = Told(0), [True]
    hall.scheduler.holds = lambda _index: bound[0]  # type: ignore[method-assign]
    assert hall.take(slot) is None
    hall.dispatcher.leave(slot)
    assert not slot.gone
    request = hall.enqueue()
    assert hall.take(slot) == [request]
    answer(hall, request)
    assert not slot.gone
    assert hall.take(slot) is None
    bound[0] = False
    hall.dispatcher.wake()  # such as when its sequence expired
    assert slot.gone


def test_a_thread_that_waits_goes_home(hall: Hall) -> None:
    slot = Slot(Told(0).context)
    said: list[bool] = []
    thread = threading.Thread(target=lambda: said.append(hall.dispatcher.wait_ready(slot)))
    thread.start()
    hall.dispatcher.leave(slot)
    thread.join(10)
    assert said == [False]
    assert hall.dispatcher.wait_ready(slot) is False
