from __future__ import annotations

from threading import Event, Thread

from tritonpy_ipc.waiter import Waiter

WAIT_S = 10


def test_a_wake_up_before_the_sleep_is_not_lost_and_several_are_one() -> None:
    waiter = Waiter()
    waiter.wake()
    waiter.wake()
    waiter.sleep()
    woken = Event()
    thread = Thread(target=lambda: (waiter.sleep(), woken.set()))
    thread.start()
    assert not woken.is_set()
    waiter.wake()
    assert woken.wait(WAIT_S)
    thread.join()


def test_a_sleep_may_have_a_timeout() -> None:
    Waiter().sleep(0.001)
