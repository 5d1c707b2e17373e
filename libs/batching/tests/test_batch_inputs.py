from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_batching.batch_layout import BatchInputRule, batch_input_rules, batch_inputs
from tritonpy_testing.parse import model_config
from tritonpy_types import Tensor
from tritonpy_types.errors import Internal

KINDS = (
    "BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN",
)  # fmt: skip
Shape = tuple[int, ...]


def rule(kind: str, datatype: str = "TYPE_INT32", targets: str = '"COUNT"') -> BatchInputRule:
    config = model_config(
        f'batch_input {{ kind: {kind} target_name: [{targets}] data_type: {datatype} source_input: "IN" }}'
    )
    (found,) = batch_input_rules(config)
    return found


def reference(kind: str, shapes: list[Shape]) -> Any:
    """The plain definition, computed number by number without numpy."""
    counts = []
    for shape in shapes:
        count = 1
        for size in shape:
            count *= size
        counts.append(count)
    if kind == "BATCH_ELEMENT_COUNT":
        return counts
    sums, total = [], 0
    for count in counts:
        total += count
        sums.append(total)
    if kind == "BATCH_ACCUMULATED_ELEMENT_COUNT":
        return sums
    if kind == "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
        return [0, *sums]
    if kind == "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":
        return [0] * max(counts)
    items = []
    for rows, *sizes in shapes:
        for _ in range(rows):
            items.append(list(sizes))  # noqa: PERF401
    if kind == "BATCH_ITEM_SHAPE":
        return items
    return [size for item in items for size in item]


@st.composite
def batches(draw: st.DrawFn) -> list[Shape]:
    rank = draw(st.integers(1, 3))
    shape = st.tuples(st.integers(1, 3), *[st.integers(0, 5)] * rank)
    return draw(st.lists(shape, min_size=1, max_size=6))


@given(st.sampled_from(KINDS), batches(), st.sampled_from(["INT32", "FP32"]))
def test_every_kind_matches_its_plain_definition(
    kind: str, shapes: list[Shape], datatype: str
) -> None:
    (tensor,) = rule(kind, f"TYPE_{datatype}").tensors(shapes)
    assert (tensor.name, tensor.datatype, tensor.data.dtype) == (
        "COUNT",
        datatype,
        np.dtype(tensor.data.dtype),
    )
    assert tensor.numpy().tolist() == reference(kind, shapes)
    assert tensor.shape == tensor.data.shape


def test_the_documented_example() -> None:
    (tensor,) = rule("BATCH_ACCUMULATED_ELEMENT_COUNT", "TYPE_FP32").tensors(
        [(1, 3), (1, 4), (1, 5)]
    )
    assert tensor.numpy().tolist() == [3.0, 7.0, 12.0]


def test_a_request_of_two_rows_is_one_count_and_two_items() -> None:
    shapes = [(2, 1, 2), (1, 3, 4)]
    assert rule("BATCH_ELEMENT_COUNT").tensors(shapes)[0].numpy().tolist() == [4, 12]
    assert rule("BATCH_ITEM_SHAPE").tensors(shapes)[0].numpy().tolist() == [[1, 2], [1, 2], [3, 4]]


def test_items_without_dimensions_have_no_sizes() -> None:
    assert rule("BATCH_ITEM_SHAPE").tensors([(2,), (1,)])[0].shape == (3, 0)


def test_every_target_gets_the_same() -> None:
    first, second = rule("BATCH_ELEMENT_COUNT", targets='"A", "B"').tensors([(1, 3)])
    assert (first.name, second.name) == ("A", "B")
    assert first.numpy().tolist() == second.numpy().tolist() == [3]


def test_a_count_outside_the_range_of_the_type_raises() -> None:
    with pytest.raises(OverflowError):
        rule("BATCH_ELEMENT_COUNT").tensors([(1, 2**31)])


def test_a_slot_without_data_counts_as_one_row() -> None:
    one = {"IN": Tensor.from_numpy("IN", np.zeros((1, 3), np.float32))}
    (tensor,) = batch_inputs([rule("BATCH_ELEMENT_COUNT")], [None, one, None], one)
    assert tensor.numpy().tolist() == [3, 3, 3]


def test_requests_without_the_source_are_refused() -> None:
    with pytest.raises(
        Internal,
        match="a batch input describes input 'IN', which the requests of the batch do not have",
    ):
        batch_inputs([rule("BATCH_ELEMENT_COUNT")], [{}], {})
