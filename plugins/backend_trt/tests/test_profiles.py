from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_backend_trt.limits import range_violation
from tritonpy_backend_trt.profiles import (
    check_index,
    no_profile_message,
    profiles_by_index,
    select_profile,
)
from tritonpy_backend_trt.signature import Profile, Range


def profile(index, *sizes, values=None):
    return Profile(index, {"IN": Range(*sizes)}, values or {})


SMALL = profile(0, (1, 8), (1, 8), (4, 8))
LARGE = profile(1, (1, 8), (16, 8), (32, 8))


@st.composite
def profiles(draw):
    found = []
    for index in range(draw(st.integers(1, 4))):
        triples = [
            sorted(draw(st.lists(st.integers(1, 20), min_size=3, max_size=3))) for _ in range(2)
        ]
        found.append(profile(index, *zip(*triples, strict=True)))
    return found


def test_groups_select_profiles_by_index_and_default_to_the_first():
    assert profiles_by_index(["2", "0", "10"]) == {0: "0", 2: "2", 10: "10"}
    assert list(profiles_by_index(["10", "2"])) == [2, 10]
    assert profiles_by_index([]) == {0: "default"}
    assert profiles_by_index(["1", "01"]) == {1: "01"}


def test_a_profile_that_the_engine_lacks_is_refused_as_triton_does():
    check_index(1, "1", "m_0", 2)
    with pytest.raises(InvalidArgument) as caught:
        check_index(2, "2", "m_0", 2)
    assert caught.value.message == (
        "Can not set the specified optimization profile 2[2] for m_0. Expected optimization profile index range 0-1"
    )


@pytest.mark.parametrize(("rows", "expected"), [(1, SMALL), (4, SMALL), (5, LARGE), (32, LARGE)])
def test_the_profile_with_the_nearest_optimum_serves(rows, expected):
    assert select_profile([SMALL, LARGE], {"IN": (rows, 8)}, {}) is expected


def test_a_batch_outside_all_profiles_has_no_profile():
    assert select_profile([SMALL, LARGE], {"IN": (33, 8)}, {}) is None
    assert no_profile_message({0: "0", 1: "1"}) == (
        "failed to find any Optimization Profile among [ 0[0] 1[1]] to support the requested dimensions (or shape values), "
        "proceeding with first profile."
    )


def test_the_first_of_equally_near_profiles_is_selected():
    twin = profile(5, *SMALL.shapes["IN"])
    assert select_profile([SMALL, twin], {"IN": (2, 8)}, {}) is SMALL


def test_values_of_shape_tensors_count_like_sizes():
    near = Profile(0, {}, {"SIZE": Range((1, 1), (4, 4), (9, 9))})
    far = Profile(1, {}, {"SIZE": Range((1, 1), (9, 9), (9, 9))})
    small = Profile(2, {}, {"SIZE": Range((1, 1), (2, 3), (3, 3))})
    assert select_profile([far, small, near], {}, {"SIZE": [2, 3]}) is small
    assert select_profile([far, small, near], {}, {"SIZE": [4, 3]}) is near
    assert select_profile([small], {}, {"SIZE": [4, 3]}) is None
    assert select_profile([small], {}, {"SIZE": [2, 3, 1]}) is None


@given(profiles(), st.tuples(st.integers(1, 20), st.integers(1, 20)))
def test_the_selected_profile_is_the_nearest_that_allows_the_batch(found, shape):
    allowed = [each for each in found if range_violation(each.shapes["IN"], shape) is None]
    chosen = select_profile(found, {"IN": shape}, {})
    assert (chosen is None) == (not allowed)
    assume(chosen is not None)

    def distance(each):
        return sum(abs(a - b) for a, b in zip(each.shapes["IN"].optimum, shape, strict=True))

    assert chosen in allowed
    assert distance(chosen) == min(map(distance, allowed))


@given(profiles())
def test_the_optimum_of_a_profile_is_served_by_one_with_that_optimum(found):
    for each in found:
        chosen = select_profile(found, {"IN": each.shapes["IN"].optimum}, {})
        assert chosen is not None
        assert chosen.shapes["IN"].optimum == each.shapes["IN"].optimum
