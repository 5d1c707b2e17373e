from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.device_memory.arena import ALIGNMENT, Arena, aligned_size

TOTAL = 16 * ALIGNMENT


def test_ranges_are_aligned_as_those_of_cuda():
    arena = Arena(TOTAL)
    assert [arena.take(size) for size in (1, ALIGNMENT, ALIGNMENT + 1, 0)] == [
        0, ALIGNMENT, 2 * ALIGNMENT, 4 * ALIGNMENT
    ]  # fmt: skip


def test_a_range_that_does_not_fit_is_none():
    arena = Arena(TOTAL)
    assert arena.take(TOTAL + 1) is None
    assert arena.take(TOTAL) == 0
    assert arena.take(1) is None


def test_a_size_that_is_not_a_multiple_of_the_alignment_is_rounded_down():
    arena = Arena(ALIGNMENT + 10)
    assert (arena.take(1), arena.take(1)) == (0, None)


def test_an_empty_arena_has_no_ranges():
    assert Arena(0).take(0) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5 * ALIGNMENT)), max_size=60))
def test_ranges_never_overlap_and_are_all_reusable(steps):
    arena, taken = Arena(TOTAL), {}
    for takes, number in steps:
        if takes:
            offset = arena.take(number)
            if offset is not None:
                taken[offset] = number
        elif taken:
            offset = list(taken)[number % len(taken)]
            arena.free(offset, taken.pop(offset))
        ends = sorted((offset, offset + aligned_size(size)) for offset, size in taken.items())
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
        assert all(start >= 0 and end <= TOTAL for start, end in ends)
    for offset, size in taken.items():
        arena.free(offset, size)
    assert arena.take(TOTAL) == 0
