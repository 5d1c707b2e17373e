from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_trt.limits import (
    check_shape,
    check_values,
    max_rows,
    narrow_profile,
    range_violation,
)
from tritonpy_backend_trt.signature import Profile, Range, Signature, TensorInfo

from .descriptions import config, info

ALLOWED = Range((1, 2), (4, 2), (8, 4))
sizes = st.lists(st.integers(-1, 10), min_size=1, max_size=3)


def profile(allowed=ALLOWED, values=None, name="IN"):
    return Profile(0, {name: allowed}, values or {})


@given(sizes)
def test_a_shape_is_outside_exactly_when_a_known_size_is(shape):
    fits = (
        len(shape) == 2
        and all(
            size == -1 or low <= size <= high
            for low, size, high in zip((1, 2), shape, (8, 4), strict=True)
        )
        if len(shape) == 2
        else False
    )
    assert (range_violation(ALLOWED, shape) is None) == fits


def test_an_invalid_shape_is_rejected_with_tritons_text():
    with pytest.raises(Internal) as caught:
        check_shape("m_0", "IN", ALLOWED, (9, 2))
    assert caught.value.message == (
        "request specifies invalid shape for input 'IN' for m_0. Error details: model expected the shape of dimension 0 to be "
        "between 1 and 8 but received 9"
    )
    with pytest.raises(Internal, match="model expected 2 dimensions but received 3 dimensions"):
        check_shape("m_0", "IN", ALLOWED, (1, 2, 3))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([9, 2], "The shape value at index 0 is expected to be in range from 1 to 8, Got: 9"),
        ([1, 1], "The shape value at index 1 is expected to be in range from 2 to 4, Got: 1"),
        ([1], "mismatch between the number of shape values. Expecting 2. Got 1"),
    ],
)
def test_invalid_shape_values_are_rejected_with_tritons_text(values, text):
    with pytest.raises(InvalidArgument) as caught:
        check_values(ALLOWED, values)
    assert caught.value.message == text


def test_a_configuration_narrows_what_a_profile_allows():
    text = "max_batch_size: 4 input { name: 'IN' data_type: TYPE_FP32 dims: 3 }"
    found = narrow_profile(profile(), config(text), Signature({"IN": info("IN", -1, -1)}, ()))
    assert found.shapes["IN"] == Range((1, 2), (4, 2), (4, 3))


def test_an_open_dimension_keeps_the_largest_size_of_the_profile():
    text = "max_batch_size: 16 input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"
    found = narrow_profile(profile(), config(text), Signature({"IN": info("IN", -1, -1)}, ()))
    assert found.shapes["IN"].maximum == (8, 4)


def test_shape_tensors_are_not_narrowed():
    text = (
        "max_batch_size: 4 input { name: 'IN' data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }"
    )
    given_profile = profile(Range((2,), (2,), (2,)), {"IN": ALLOWED})
    signature = Signature({"IN": TensorInfo("IN", "INT32", (2,), is_input=True, is_shape=True)}, ())
    assert narrow_profile(given_profile, config(text), signature) == given_profile


def test_a_configured_shape_that_the_profile_does_not_have_is_refused():
    text = "max_batch_size: 4 input { name: 'IN' data_type: TYPE_FP32 dims: 5 }"
    with pytest.raises(InvalidArgument) as caught:
        narrow_profile(profile(), config(text), Signature({"IN": info("IN", -1, -1)}, ()))
    assert caught.value.message == (
        "model configuration specified invalid shape for input 'IN' for model m. Error details: model expected the shape of "
        "dimension 1 to be between 2 and 4 but received 5"
    )


@pytest.mark.parametrize(
    ("shapes", "values", "rows"),
    [
        ({"A": ALLOWED}, {}, 8),
        ({"A": ALLOWED, "B": Range((1,), (1,), (6,))}, {}, 6),
        (
            {"A": ALLOWED, "SIZE": Range((3,), (3,), (3,))},
            {"SIZE": Range((1, 1, 1), (2, 2, 2), (5, 9, 9))},
            5,
        ),
        ({"A": Range((), (), ())}, {}, 0),
        ({}, {}, 0),
    ],
)
def test_the_largest_batch_is_what_every_input_allows(shapes, values, rows):
    assert max_rows(Profile(0, shapes, values)) == rows
