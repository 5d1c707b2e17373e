from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tritonpy_ipc import ProtocolError
from tritonpy_ipc.blocks import BlockInputs, BlockRow, BlockView, Stack, block_ranges
from tritonpy_ipc.signatures import Column, SignatureReader, SignatureWriter, TensorSignature
from tritonpy_ipc.tensors import copy_into, pack, unpack
from tritonpy_types import DTYPES

from .exchange import SampleTensor, contents, floats, requests, tensor

NONE_REQUESTED: list[Any] = [None] * 100


def sent(
    rows: Sequence[Any], requested: Sequence[Any], place: Any = BlockRow, cut: int = 0
) -> tuple[list[Any], list[Any], np.ndarray]:
    """Pack `rows`, remove the last `cut` bytes and return the unpacked rows."""
    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    words, parts, size = pack(rows, requested, writer)
    reader.learn(writer.new_signatures())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    got, got_requested = unpack(words, 0, payload[: size - cut], reader, SampleTensor, place)
    return got, got_requested, payload


@given(requests())
def test_forwarded_rows_arrive_unchanged(row: tuple[list[list[SampleTensor]], list[Any]]) -> None:
    rows, requested = row
    first, got_requested, _ = sent(rows, requested)
    again, requested_again, _ = sent(first, got_requested)
    assert contents(again) == contents(first) == contents(rows)
    assert requested_again == got_requested == requested


@given(requests())
def test_rows_of_several_frames_are_forwarded_in_any_order(
    row: tuple[list[list[SampleTensor]], list[Any]],
) -> None:
    rows, requested = row
    one, other = sent(rows, requested)[0], sent(rows, requested)[0]
    mixed = [*one[::2], *reversed(other), *one[1::2], *rows]
    order = [*requested[::2], *reversed(requested), *requested[1::2], *requested]
    got, got_requested, _ = sent(mixed, order)
    assert contents(got) == contents([*rows[::2], *reversed(rows), *rows[1::2], *rows])
    assert got_requested == order


@given(requests())
def test_rows_of_tensors_and_inputs_in_blocks_travel_in_one_frame(
    row: tuple[list[list[SampleTensor]], list[Any]],
) -> None:
    rows, requested = row
    placed = sent(rows, requested, BlockInputs)[0]
    mixed = [row for pair in zip(placed, rows, placed, strict=True) for row in pair]
    got, got_requested, _ = sent(mixed, [outputs for outputs in requested for _ in range(3)])
    assert contents(got) == contents([row for row in rows for _ in range(3)])
    assert got_requested == [outputs for outputs in requested for _ in range(3)]


def test_no_tensors_are_created_for_forwarded_rows() -> None:
    made: list[str] = []

    def make(name: str, *_rest: Any) -> str:
        made.append(name)
        return name

    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    words, parts, size = pack([[floats(3, number)] for number in range(9)], NONE_REQUESTED, writer)
    reader.learn(writer.new_signatures())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    rows, _ = unpack(words, 0, payload, reader, make, BlockRow)
    again = pack(rows[2:7], NONE_REQUESTED, SignatureWriter())
    assert made == []
    assert len(again[1]) == 2  # the bytes of five rows in one piece, and the padding
    assert list(rows[4]) == made == ["T"]


def test_rows_of_several_blocks_are_one_group_of_the_frame() -> None:
    one, other = (sent([[floats(4, number)]] * 3, NONE_REQUESTED)[0] for number in (1, 2))
    words, parts, _ = pack([*one, *other], NONE_REQUESTED, SignatureWriter())
    assert words == [1, 0, 6]
    assert b"".join(parts) == np.repeat(np.array([1, 2], np.float32), 12).tobytes()


def test_a_row_is_a_sequence_of_the_same_tensors_each_time() -> None:
    values = [
        tensor("INT8", (3,), b"abc", DTYPES, "A"),
        tensor("FP64", (), b"12345678", DTYPES, "B"),
    ]
    (_, row), _, payload = sent([values, values], NONE_REQUESTED)
    assert [each.name for each in row] == ["A", "B"]
    assert (len(row), row[0] is row[-2], row[1] is list(row)[1]) == (2, True, True)
    assert [each.data.tobytes() for each in row] == [b"abc", b"12345678"]
    assert all(np.shares_memory(each.data, payload) for each in row)
    assert row.index(row[1]) == 1


def test_inputs_are_a_mapping_by_name_in_the_order_of_the_row() -> None:
    values = [
        tensor("INT8", (3,), b"abc", DTYPES, "B"),
        tensor("FP64", (), b"12345678", DTYPES, "A"),
    ]
    (inputs,), _, _ = sent([values], NONE_REQUESTED, BlockInputs)
    assert (list(inputs), len(inputs), "A" in inputs, "C" in inputs) == (["B", "A"], 2, True, False)
    assert inputs["A"] is inputs.get("A") is dict(inputs.items())["A"]
    assert [each.name for each in inputs.values()] == ["B", "A"]
    with pytest.raises(KeyError):
        inputs["C"]


@pytest.mark.parametrize(
    "row",
    [
        [],
        [tensor("BYTES", (1,), b"\1\0\0\0x", DTYPES)],
        [floats(2), floats(2)],
    ],
)
def test_rows_of_variable_size_or_with_equal_names_are_not_kept_in_a_block(
    row: list[SampleTensor],
) -> None:
    got, _, _ = sent([row, row], NONE_REQUESTED)
    assert not any(isinstance(each, BlockView) for each in got)
    assert contents(got) == contents([row, row])


def test_a_block_beyond_the_end_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="invalid tensors"):
        sent([[floats(4)]] * 2, NONE_REQUESTED, cut=16)


def stack(count: int, rows: int = 1) -> Stack:
    """Return rows where `x` counts up from 0 and `y` from 0.5; each has a batch size of `rows`."""
    columns = [
        Column("x", "INT32", (rows, 2), np.dtype(np.int32)),
        Column("y", "FP32", (rows,), np.dtype(np.float32)),
    ]
    x = np.arange(2 * rows * count, dtype=np.int32).reshape(-1, 2)
    return Stack(
        TensorSignature(columns, None),
        count,
        [x, np.arange(rows * count, dtype=np.float32) + 0.5],
        SampleTensor,
    )


def test_a_row_of_a_stack_is_its_part_of_each_array() -> None:
    row = BlockRow(stack(3, rows=2), 1)
    assert [each.name for each in row] == ["x", "y"]
    assert row[0].data.tolist() == [[4, 5], [6, 7]]
    assert row[1].data.tolist() == [2.5, 3.5]
    assert row[0].shape == (2, 2)


def test_rows_of_a_stack_arrive_unchanged() -> None:
    rows: list[Any] = [BlockRow(stack(4), place) for place in range(4)]
    got, _, _ = sent(rows, NONE_REQUESTED[:4])
    assert contents(got) == contents(rows)


def test_the_parts_of_a_block_hold_the_bytes_of_its_rows() -> None:
    rows = [BlockRow(stack(3), place) for place in range(3)]
    (placed, *_), _, _ = sent(rows, NONE_REQUESTED[:3])
    for block in (rows[0].block, placed.block):
        for at, part in enumerate(block.parts(1, 3)):
            assert part.tobytes() == rows[1][at].data.tobytes() + rows[2][at].data.tobytes()


def test_a_derived_value_of_all_rows_is_computed_once_per_key() -> None:
    calls = []

    def total(rows: Any, factor: int) -> int:
        calls.append(factor)
        return factor * rows.count

    block = stack(3)
    assert [block.derived(total, factor) for factor in (2, 2, 5, 2)] == [6, 6, 15, 6]
    assert calls == [2, 5, 2]


def test_consecutive_rows_become_one_tensor_without_a_copy() -> None:
    rows = [BlockRow(stack(5, rows=2), place) for place in range(5)]
    (placed, *_), _, payload = sent(rows, NONE_REQUESTED[:5])
    x, y = placed.block.tensors(1, 3)
    assert x.data.tolist() == [[4, 5], [6, 7], [8, 9], [10, 11]]
    assert (x.shape, y.data.tolist()) == ((4, 2), [2.5, 3.5, 4.5, 5.5])
    assert np.shares_memory(x.data, payload)


def test_block_ranges_are_in_the_order_of_the_rows() -> None:
    one, other = stack(3), stack(2)
    rows = [
        BlockRow(one, 0),
        BlockRow(one, 1),
        BlockRow(other, 0),
        BlockRow(one, 2),
        BlockRow(one, 1),
    ]
    assert block_ranges(rows) == [(one, 0, 2), (other, 0, 1), (one, 2, 3), (one, 1, 2)]


def test_there_are_no_block_ranges_for_different_or_unplaced_rows() -> None:
    assert block_ranges([BlockRow(stack(2), 0), BlockRow(stack(2, rows=2), 0)]) is None
    assert block_ranges([BlockRow(stack(2), 0), [floats(1)]]) is None
    assert block_ranges([[floats(1)], BlockRow(stack(2), 0)]) is None
