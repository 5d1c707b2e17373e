from __future__ import annotations

from functools import partial

from tritonpy_ensemble.gate import Gate


def test_more_than_allowed_wait_in_the_order_in_which_they_came():
    gate, started = Gate(2), []
    assert [gate.enter("me", partial(started.append, number)) for number in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    gate.leave()
    assert started == [2]
    gate.leave()
    gate.leave()
    assert started == [2, 3, 4]


def test_nobody_passes_those_who_wait():
    gate, started = Gate(1), []
    gate.enter("a", partial(started.append, "a"))
    gate.enter("b", lambda: started.append("b") or gate.enter("d", partial(started.append, "d")))
    gate.enter("c", partial(started.append, "c"))
    gate.leave()
    assert started == ["b"]
    gate.leave()
    gate.leave()
    assert started == ["b", "c", "d"]


def test_room_that_nobody_wanted_is_there_for_the_next():
    gate = Gate(1)
    assert gate.enter("a", list)
    gate.leave()
    assert gate.enter("b", list)
    assert not gate.enter("c", list)


def test_who_is_forgotten_is_not_let_in():
    gate, started = Gate(1), []
    gate.enter("a", list)
    for whose in ("b", "c", "b", "d"):
        gate.enter(whose, partial(started.append, whose))
    assert gate.forget("b") == 2
    assert gate.forget("b") == 0
    for _ in range(3):
        gate.leave()
    assert started == ["c", "d"]


def test_a_long_queue_of_those_who_leave_at_once_needs_no_deep_stack():
    gate, started = Gate(1), []
    gate.enter("first", list)

    def come_and_go(number):
        started.append(number)
        gate.leave()

    for number in range(10_000):
        gate.enter(number, partial(come_and_go, number))
    gate.leave()
    assert started == list(range(10_000))
