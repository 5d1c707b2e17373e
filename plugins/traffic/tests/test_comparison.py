from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritonpy import InferResponse, Internal, Tensor
from tritonpy_traffic.comparison import describe_difference
from tritonpy_traffic.spec import Tolerance

EXACT = Tolerance()


def response(error: str = "", **outputs: Any) -> InferResponse:
    tensors = [Tensor.from_numpy(name, np.asarray(value)) for name, value in outputs.items()]
    return InferResponse(tensors, "m", 1, error=Internal(error) if error else None)


def compare(one: InferResponse, other: InferResponse, tolerance: Tolerance = EXACT) -> str:
    return describe_difference([one], [other], tolerance, {})


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, np.nan, np.inf, -np.inf], np.float32), np.array([2**63 - 1, -(2**63)], np.int64), np.array([], np.uint8),
        np.array([b"text", b"\xff"], np.object_), np.array([True, False]), np.array([1, 2], ml_dtypes.bfloat16), np.array(3, np.float16),
    ],
)  # fmt: skip
def test_equal_responses_have_no_difference(value: Any) -> None:
    assert compare(response(OUT=value), response(OUT=value.copy())) == ""


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (
            response(OUT=[1.0, 2.0]),
            response(OUT=[1.0, 2.5]),
            "output 'OUT': 1 of 2 elements differ",
        ),
        (response(OUT=[1.0]), response(OUT=[np.nan]), "output 'OUT': 1 of 1 elements differ"),
        (
            response(OUT=np.array([b"a"])),
            response(OUT=np.array([b"b"])),
            "output 'OUT': 1 of 1 elements differ",
        ),
        (response(OUT=[True]), response(OUT=[False]), "output 'OUT': 1 of 1 elements differ"),
        (response(OUT=[1]), response(OUT=[1.0]), "output 'OUT': datatype FP64 instead of INT64"),
        (response(OUT=[1]), response(OUT=[[1]]), "output 'OUT': shape [1, 1] instead of [1]"),
        (
            response(OUT=[1]),
            response(OUT=[1], MORE=[1]),
            "outputs ['MORE', 'OUT'] instead of ['OUT']",
        ),
        (response(OUT=[1]), response("broken"), "error 'broken' instead of a response"),
        (response("broken"), response(OUT=[1]), "a response instead of error 'broken'"),
    ],
)
def test_differences_are_described(one: InferResponse, other: InferResponse, text: str) -> None:
    assert compare(one, other) == text


def test_errors_with_different_texts_are_equal() -> None:
    assert compare(response("one"), response("other")) == ""


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.int64, np.uint64, np.float32, np.float64, np.float16]
)
def test_numbers_may_differ_within_the_tolerance(dtype: Any) -> None:
    one, near, far = (response(OUT=np.array([value], dtype)) for value in (100, 102, 104))
    for tolerance in (Tolerance(absolute=2), Tolerance(relative=0.02)):
        assert compare(one, near, tolerance) == compare(near, one, tolerance) == ""
        assert compare(one, far, tolerance) != ""


def test_differences_that_overflow_are_found() -> None:
    ends = np.iinfo(np.int64)
    assert (
        compare(
            response(OUT=np.array([ends.min])),
            response(OUT=np.array([ends.max])),
            Tolerance(absolute=1e6),
        )
        != ""
    )


def test_an_output_may_have_a_separate_tolerance() -> None:
    one, other = response(A=[1.0], B=[1.0]), response(A=[1.0], B=[1.3])
    assert describe_difference([one], [other], EXACT, {"B": Tolerance(absolute=0.5)}) == ""
    assert (
        describe_difference([one], [other], Tolerance(absolute=0.5), {"B": EXACT})
        == "output 'B': 1 of 1 elements differ"
    )


def test_responses_of_decoupled_models_are_compared_in_order() -> None:
    empty = InferResponse((), empty=True)
    one, two = response(OUT=[1]), response(OUT=[2])
    assert describe_difference([one, two, empty], [one, two], EXACT, {}) == ""
    assert (
        describe_difference([one, two, empty], [one, empty], EXACT, {})
        == "1 responses instead of 2"
    )
    assert describe_difference([one, two], [one, one], EXACT, {}) != ""
