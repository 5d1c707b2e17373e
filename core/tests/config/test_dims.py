from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.dims import dims_text, element_count, trunk_counts

SIZES = st.lists(st.integers(1, 50) | st.just(-1), max_size=8)


def test_text_has_no_spaces():
    assert dims_text((1, -1, 3)) == "[1,-1,3]"
    assert dims_text(()) == "[]"


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=8))
def test_fixed_dimensions_are_multiplied_without_overflow(sizes):
    assert element_count(sizes) == prod(sizes)


def test_no_dimensions_count_as_zero_elements():
    assert element_count([]) == 0


@given(SIZES.filter(lambda sizes: -1 in sizes))
def test_one_variable_dimension_makes_the_count_unknown(sizes):
    assert element_count(sizes) == -1


@given(SIZES)
def test_runs_cover_every_fixed_dimension(sizes):
    counts = trunk_counts(sizes)
    assert len(counts) == sizes.count(-1) + 1
    assert prod(counts) == prod(size for size in sizes if size != -1)


def test_runs_are_split_at_variable_dimensions():
    assert trunk_counts([2, 4, -1, 6]) == trunk_counts([8, -1, 1, 6]) == [8, 6]
