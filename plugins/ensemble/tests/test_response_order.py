from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_ensemble.response_order import ResponseOrder


def test_a_response_waits_for_earlier_ones():
    order = ResponseOrder()
    first, second, third = (order.root.add_child() for _ in range(3))
    order.put(third, 3)
    order.put(second, 2)
    assert list(order.due()) == []
    assert order.held == 2
    assert order.next is first
    order.put(first, 1)
    assert list(order.due()) == [1, 2, 3]
    assert order.held == 0


def test_a_closed_node_without_item_does_not_block():
    order = ResponseOrder()
    first, second = order.root.add_child(), order.root.add_child()
    order.put(second, 2)
    first.closed = True
    assert list(order.due()) == [2]


def test_a_node_with_children_blocks_until_it_is_closed():
    order = ResponseOrder()
    first, second = order.root.add_child(), order.root.add_child()
    order.put(second, 9)
    order.put(first.add_child(), 1)
    assert list(order.due()) == [1]
    order.put(first.add_child(), 2)
    assert list(order.due()) == [2]
    first.closed = True
    assert list(order.due()) == [9]


def test_rest_yields_all_remaining_items_in_order():
    order = ResponseOrder()
    first, _, third = (order.root.add_child() for _ in range(3))
    order.put(third, 3)
    order.put(first, 1)
    assert list(order.rest()) == [1, 3]
    assert list(order.rest()) == []


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=6), st.randoms(use_true_random=False))
def test_responses_are_sent_in_order(tree, random):
    """`tree` has a list per response of a model. True leads to a response, False does not."""
    order, expected, jobs = ResponseOrder(), [], []
    for number, leaves in enumerate(tree):
        parent = order.root.add_child()
        nodes = [parent.add_child() for _ in leaves]
        for index, (node, has_response) in enumerate(zip(nodes, leaves, strict=True)):
            if has_response:
                expected.append((number, index))
                jobs.append((order.put, node, (number, index)))
            else:
                jobs.append((setattr, node, "closed", True))
        jobs.append((setattr, parent, "closed", True))
    random.shuffle(jobs)
    found = []
    for function, *arguments in jobs:
        function(*arguments)
        found += order.due()
        assert found == expected[: len(found)]
    assert found == expected
    assert order.held == 0
