from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.runners.deadlock import find_cycle, find_stuck

NODES = "abcd"
GROUPS = st.lists(st.sets(st.sampled_from(NODES), min_size=1, max_size=3), max_size=3)
GRAPHS = st.dictionaries(st.sampled_from(NODES), GROUPS)


def nodes_that_can_proceed(waits):
    """Return the nodes that are free at the end of any possible order of events."""
    start = frozenset((node, index) for node in waits for index in range(len(waits[node])))
    seen, todo, gone_on = {start}, [start], set()
    while todo:
        open_waits = todo.pop()
        free = set(NODES) - {node for node, _ in open_waits}
        gone_on |= free
        for node, index in open_waits:
            after = open_waits - {(node, index)}
            if waits[node][index] & free and after not in seen:
                seen.add(after)
                todo.append(after)
    return gone_on


@given(GRAPHS)
def test_stuck_nodes_proceed_in_no_order_of_events(waits):
    assert find_stuck(waits) == set(NODES) - nodes_that_can_proceed(waits)


@given(GRAPHS)
def test_a_cycle_is_a_closed_path_of_stuck_nodes(waits):
    held = find_stuck(waits)
    for start in held:
        path = find_cycle(waits, held, start)
        assert path[0] == start
        assert path[-1] in path[:-1]
        assert len(set(path)) == len(path) - 1
        for node, then in pairwise(path):
            assert any(then in group and group <= held for group in waits[node])


def test_one_free_member_of_each_group_is_enough():
    assert find_stuck({"a": [["a", "b"]]}) == set()
    assert find_stuck({"a": [["a", "b"]], "b": [["a"]]}) == {"a", "b"}
    assert find_stuck({"a": [["b"], ["a", "c"]], "b": [["c"]]}) == set()


def test_nodes_that_wait_for_stuck_nodes_are_stuck():
    assert find_stuck({"a": [["b"]], "b": [["b"]], "c": [["a"], ["d"]]}) == {"a", "b", "c"}
