from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.runners.deadlock import circle, stuck

NODES = "abcd"
GROUPS = st.lists(st.sets(st.sampled_from(NODES), min_size=1, max_size=3), max_size=3)
GRAPHS = st.dictionaries(st.sampled_from(NODES), GROUPS)


def those_that_ever_go_on(waits):
    """Serve one wait after the other in every order that there is; return whoever was free in the end of any of them."""
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
def test_stuck_is_who_goes_on_in_no_order_of_events(waits):
    assert stuck(waits) == set(NODES) - those_that_ever_go_on(waits)


@given(GRAPHS)
def test_a_circle_is_a_way_among_the_stuck_that_comes_back_to_itself(waits):
    held = stuck(waits)
    for start in held:
        path = circle(waits, held, start)
        assert path[0] == start
        assert path[-1] in path[:-1]
        assert len(set(path)) == len(path) - 1
        for node, then in pairwise(path):
            assert any(then in group and group <= held for group in waits[node])


def test_one_free_member_of_each_group_is_enough():
    assert stuck({"a": [["a", "b"]]}) == set()
    assert stuck({"a": [["a", "b"]], "b": [["a"]]}) == {"a", "b"}
    assert stuck({"a": [["b"], ["a", "c"]], "b": [["c"]]}) == set()


def test_who_waits_for_the_stuck_is_stuck():
    assert stuck({"a": [["b"]], "b": [["b"]], "c": [["a"], ["d"]]}) == {"a", "b", "c"}
