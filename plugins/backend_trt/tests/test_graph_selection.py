from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_backend_trt.graph_selection import GraphShapes, graph_shapes, select_graph
from tritonpy_backend_trt.graph_specs import GraphSpec
from tritonpy_backend_trt.signature import Profile, Range

PROFILE = Profile(0, {"A": Range((1, 4), (2, 8), (8, 16)), "COUNTS": Range((1,), (3,), (9,))}, {})
pairs = st.tuples(st.integers(1, 6), st.integers(1, 6))


def exact(*shape):
    return GraphShapes((shape,), (shape,))


def test_a_spec_without_shapes_uses_the_profiles_optimum():
    assert graph_shapes(GraphSpec(4, 4), PROFILE, {"A"}, "m_0") == GraphShapes(
        ((4, 8), (3,)), ((4, 8), (3,))
    )


def test_a_model_that_does_not_batch_has_the_graph_of_its_optimum():
    assert graph_shapes(GraphSpec(0, 0), PROFILE, set(), "m_0").shapes == ((2, 8), (3,))


def test_shapes_of_a_spec_follow_the_batch_dimension():
    spec = GraphSpec(4, 2, {"A": (16,), "COUNTS": (9,)}, {"A": (8,), "COUNTS": (1,)})
    assert graph_shapes(spec, PROFILE, {"A"}, "m_0") == GraphShapes(((4, 16), (9,)), ((2, 8), (1,)))


def test_a_profile_that_does_not_allow_the_shapes_has_no_such_graph():
    assert graph_shapes(GraphSpec(9, 9), PROFILE, {"A"}, "m_0") is None


def test_shapes_have_to_be_given_for_every_input():
    with pytest.raises(
        InvalidArgument, match="trt failed to set input shape for unknown input 'COUNTS' for m_0"
    ):
        graph_shapes(GraphSpec(1, 1, {"A": (8,)}, {"A": (8,)}), PROFILE, {"A"}, "m_0")


def test_a_graph_of_exactly_these_shapes_comes_first():
    wide = GraphShapes(((4, 8),), ((1, 1),))
    assert select_graph([wide, exact(4, 8), exact(2, 8)], {"A": (2, 8)}) == exact(2, 8)
    assert select_graph([wide, exact(4, 8)], {"A": (4, 8)}) in {wide, exact(4, 8)}


def test_a_graph_without_a_lower_bound_fits_only_its_shapes():
    assert select_graph([exact(4, 8)], {"A": (3, 8)}) is None
    assert select_graph([], {"A": (3, 8)}) is None


def test_the_smallest_fitting_graph_is_selected():
    graphs = [GraphShapes(((size, 8),), ((1, 8),)) for size in (8, 4, 6)]
    assert select_graph(graphs, {"A": (3, 8)}).shapes == ((4, 8),)
    assert select_graph(graphs, {"A": (5, 8)}).shapes == ((6, 8),)
    assert select_graph(graphs, {"A": (9, 8)}) is None


@given(st.lists(st.tuples(pairs, pairs), max_size=6), pairs)
def test_the_selected_graph_is_the_smallest_that_fits(found, wanted):
    graphs = [GraphShapes((tuple(map(max, a, b)),), (tuple(map(min, a, b)),)) for a, b in found]
    covering = [
        each for each in graphs
        if all(low <= size <= high for low, size, high in zip(each.minimum[0], wanted, each.shapes[0], strict=True))
    ]  # fmt: skip
    chosen = select_graph(graphs, {"A": wanted})
    assert (chosen is None) == (not covering)
    if chosen is not None:
        assert chosen in covering
        assert (chosen.shapes[0] == wanted) == any(each.shapes[0] == wanted for each in covering)
