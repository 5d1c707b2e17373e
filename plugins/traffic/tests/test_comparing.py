from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritonpy import InferResponse, Internal, Tensor
from tritonpy_traffic.comparing import difference
from tritonpy_traffic.spec import Tolerance

EXACT = Tolerance()


def answer(error: str = "", **outputs: Any) -> InferResponse:
    tensors = [Tensor.from_numpy(name, np.asarray(value)) for name, value in outputs.items()]
    return InferResponse(tensors, "m", 1, error=Internal(error) if error else None)


def between(one: InferResponse, other: InferResponse, tolerance: Tolerance = EXACT) -> str:
    return difference([one], [other], tolerance, {})


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, np.nan, np.inf, -np.inf], np.float32), np.array([2**63 - 1, -(2**63)], np.int64), np.array([], np.uint8),
        np.array([b"text", b"\xff"], np.object_), np.array([True, False]), np.array([1, 2], ml_dtypes.bfloat16), np.array(3, np.float16),
    ],
)  # fmt: skip
def test_alike_is_alike(value: Any) -> None:
    assert between(answer(OUT=value), answer(OUT=value.copy())) == ""


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (answer(OUT=[1.0, 2.0]), answer(OUT=[1.0, 2.5]), "output 'OUT': 1 of 2 elements differ"),
        (answer(OUT=[1.0]), answer(OUT=[np.nan]), "output 'OUT': 1 of 1 elements differ"),
        (answer(OUT=np.array([b"a"])), answer(OUT=np.array([b"b"])), "output 'OUT': 1 of 1 elements differ"),
        (answer(OUT=[True]), answer(OUT=[False]), "output 'OUT': 1 of 1 elements differ"),
        (answer(OUT=[1]), answer(OUT=[1.0]), "output 'OUT': datatype FP64 instead of INT64"),
        (answer(OUT=[1]), answer(OUT=[[1]]), "output 'OUT': shape [1, 1] instead of [1]"),
        (answer(OUT=[1]), answer(OUT=[1], MORE=[1]), "the outputs ['MORE', 'OUT'] instead of ['OUT']"),
        (answer(OUT=[1]), answer("broken"), "the error 'broken'"),
        (answer("broken"), answer(OUT=[1]), "an answer instead of the error 'broken'"),
    ],
)
def test_what_differs_is_said(one: InferResponse, other: InferResponse, said: str) -> None:
    assert between(one, other) == said


def test_both_may_fail_in_their_own_words() -> None:
    assert between(answer("one"), answer("other")) == ""


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint64, np.float32, np.float64, np.float16])
def test_numbers_may_differ_as_far_as_their_tolerance_goes(dtype: Any) -> None:
    one, near, far = (answer(OUT=np.array([value], dtype)) for value in (100, 102, 104))
    for tolerance in (Tolerance(absolute=2), Tolerance(relative=0.02)):
        assert between(one, near, tolerance) == between(near, one, tolerance) == ""
        assert between(one, far, tolerance) != ""


def test_numbers_that_are_as_far_apart_as_can_be_are_not_near() -> None:
    ends = np.iinfo(np.int64)
    assert between(answer(OUT=np.array([ends.min])), answer(OUT=np.array([ends.max])), Tolerance(absolute=1e6)) != ""


def test_an_output_may_have_a_tolerance_of_its_own() -> None:
    one, other = answer(A=[1.0], B=[1.0]), answer(A=[1.0], B=[1.3])
    assert difference([one], [other], EXACT, {"B": Tolerance(absolute=0.5)}) == ""
    assert difference([one], [other], Tolerance(absolute=0.5), {"B": EXACT}) == "output 'B': 1 of 1 elements differ"


def test_answers_of_decoupled_models_are_compared_one_by_one() -> None:
    empty = InferResponse((), empty=True)
    one, two = answer(OUT=[1]), answer(OUT=[2])
    assert difference([one, two, empty], [one, two], EXACT, {}) == ""
    assert difference([one, two, empty], [one, empty], EXACT, {}) == "1 answers instead of 2"
    assert difference([one, two], [one, one], EXACT, {}) != ""
