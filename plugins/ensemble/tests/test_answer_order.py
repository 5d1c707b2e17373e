from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ensemble.answer_order import AnswerOrder


def test_an_answer_waits_for_those_before_it():
    order = AnswerOrder()
    first, second, third = (order.root.branch() for _ in range(3))
    order.put(third, 3)
    order.put(second, 2)
    assert list(order.due()) == []
    assert order.held == 2
    assert order.next is first
    order.put(first, 1)
    assert list(order.due()) == [1, 2, 3]
    assert order.held == 0


def test_a_place_that_is_closed_without_an_answer_holds_nobody_up():
    order = AnswerOrder()
    first, second = order.root.branch(), order.root.branch()
    order.put(second, 2)
    first.closed = True
    assert list(order.due()) == [2]


def test_a_place_with_places_below_waits_until_no_more_can_come():
    order = AnswerOrder()
    first, second = order.root.branch(), order.root.branch()
    order.put(second, 9)
    order.put(first.branch(), 1)
    assert list(order.due()) == [1]
    order.put(first.branch(), 2)
    assert list(order.due()) == [2]
    first.closed = True
    assert list(order.due()) == [9]


def test_the_rest_is_everything_that_is_there_in_order():
    order = AnswerOrder()
    first, _, third = (order.root.branch() for _ in range(3))
    order.put(third, 3)
    order.put(first, 1)
    assert list(order.rest()) == [1, 3]
    assert list(order.rest()) == []


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=6), st.randoms(use_true_random=False))
def test_whatever_comes_first_the_answers_leave_in_order(tree, random):
    """`tree` has for each answer of a model those of the next one: True where it leads to an answer, False where to nothing."""
    order, expected, jobs = AnswerOrder(), [], []
    for number, leaves in enumerate(tree):
        above = order.root.branch()
        places = [above.branch() for _ in leaves]
        for index, (place, answers) in enumerate(zip(places, leaves, strict=True)):
            if answers:
                expected.append((number, index))
                jobs.append((order.put, place, (number, index)))
            else:
                jobs.append((setattr, place, "closed", True))
        jobs.append((setattr, above, "closed", True))
    random.shuffle(jobs)
    found = []
    for act, *arguments in jobs:
        act(*arguments)
        found += order.due()
        assert found == expected[: len(found)]
    assert found == expected
    assert order.held == 0
