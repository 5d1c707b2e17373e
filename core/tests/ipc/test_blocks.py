from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.blocks import Placed, PlacedInputs, PlacedRow, Stack, stretches
from tritonpy.ipc.signatures import Column, Known, Signature, Written
from tritonpy.ipc.tensors import copy_into, pack, unpack
from tritonpy.types import DTYPES

from .exchange import Said, contents, floats, requests, tensor

NO_WANTS: list[Any] = [None] * 100


def sent(
    rows: Sequence[Any], wants: Sequence[Any], place: Any = PlacedRow, cut: int = 0
) -> tuple[list[Any], list[Any], np.ndarray]:
    """Return what arrives of `rows`, `cut` bytes short."""
    written, known = Written(), Known(DTYPES)
    words, parts, size = pack(rows, wants, written)
    known.learn(written.news())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    got, wanted = unpack(words, 0, payload[: size - cut], known, Said, place)
    return got, wanted, payload


@given(requests())
def test_rows_that_are_passed_on_arrive_as_they_were_sent(said: tuple[list[list[Said]], list[Any]]) -> None:
    rows, wants = said
    first, wanted, _ = sent(rows, wants)
    again, wanted_again, _ = sent(first, wanted)
    assert contents(again) == contents(first) == contents(rows)
    assert wanted_again == wanted == wants


@given(requests())
def test_rows_of_several_frames_are_passed_on_in_any_order(said: tuple[list[list[Said]], list[Any]]) -> None:
    rows, wants = said
    one, other = sent(rows, wants)[0], sent(rows, wants)[0]
    mixed = [*one[::2], *reversed(other), *one[1::2], *rows]
    order = [*wants[::2], *reversed(wants), *wants[1::2], *wants]
    got, wanted, _ = sent(mixed, order)
    assert contents(got) == contents([*rows[::2], *reversed(rows), *rows[1::2], *rows])
    assert wanted == order


@given(requests())
def test_rows_of_tensors_and_inputs_in_blocks_travel_in_one_frame(said: tuple[list[list[Said]], list[Any]]) -> None:
    rows, wants = said
    placed = sent(rows, wants, PlacedInputs)[0]
    mixed = [row for pair in zip(placed, rows, placed, strict=True) for row in pair]
    got, wanted, _ = sent(mixed, [want for want in wants for _ in range(3)])
    assert contents(got) == contents([row for row in rows for _ in range(3)])
    assert wanted == [want for want in wants for _ in range(3)]


def test_nothing_is_made_of_what_is_only_passed_on() -> None:
    made: list[str] = []

    def make(name: str, *_rest: Any) -> str:
        made.append(name)
        return name

    written, known = Written(), Known(DTYPES)
    words, parts, size = pack([[floats(3, number)] for number in range(9)], NO_WANTS, written)
    known.learn(written.news())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    rows, _ = unpack(words, 0, payload, known, make, PlacedRow)
    again = pack(rows[2:7], NO_WANTS, Written())
    assert made == []
    assert len(again[1]) == 2  # the bytes of five rows in one piece, and padding
    assert list(rows[4]) == made == ["T"]


def test_rows_of_several_blocks_are_one_group_of_the_frame() -> None:
    one, other = (sent([[floats(4, number)]] * 3, NO_WANTS)[0] for number in (1, 2))
    words, parts, _ = pack([*one, *other], NO_WANTS, Written())
    assert words == [1, 0, 6]
    assert b"".join(parts) == np.repeat(np.array([1, 2], np.float32), 12).tobytes()


def test_a_row_is_a_sequence_of_the_same_tensors_each_time() -> None:
    values = [tensor("INT8", (3,), b"abc", DTYPES, "A"), tensor("FP64", (), b"12345678", DTYPES, "B")]
    (_, row), _, payload = sent([values, values], NO_WANTS)
    assert [each.name for each in row] == ["A", "B"]
    assert (len(row), row[0] is row[-2], row[1] is list(row)[1]) == (2, True, True)
    assert [each.data.tobytes() for each in row] == [b"abc", b"12345678"]
    assert all(np.shares_memory(each.data, payload) for each in row)
    assert row.index(row[1]) == 1


def test_inputs_are_a_mapping_by_name_in_the_order_of_the_row() -> None:
    values = [tensor("INT8", (3,), b"abc", DTYPES, "B"), tensor("FP64", (), b"12345678", DTYPES, "A")]
    (inputs,), _, _ = sent([values], NO_WANTS, PlacedInputs)
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
def test_rows_without_a_size_of_their_own_or_with_equal_names_leave_their_block_at_once(row: list[Said]) -> None:
    got, _, _ = sent([row, row], NO_WANTS)
    assert not any(isinstance(each, Placed) for each in got)
    assert contents(got) == contents([row, row])


def test_a_block_beyond_the_end_is_a_broken_protocol() -> None:
    with pytest.raises(ProtocolError, match="do not fit"):
        sent([[floats(4)]] * 2, NO_WANTS, cut=16)


def stack(count: int, rows: int = 1) -> Stack:
    """`x` counts up from 0, `y` from 0.5; each row has `rows` rows of the model."""
    columns = [Column("x", "INT32", (rows, 2), np.dtype(np.int32)), Column("y", "FP32", (rows,), np.dtype(np.float32))]
    x = np.arange(2 * rows * count, dtype=np.int32).reshape(-1, 2)
    return Stack(Signature(columns, None), count, [x, np.arange(rows * count, dtype=np.float32) + 0.5], Said)


def test_a_row_of_a_stack_is_its_part_of_each_array() -> None:
    said = PlacedRow(stack(3, rows=2), 1)
    assert [each.name for each in said] == ["x", "y"]
    assert said[0].data.tolist() == [[4, 5], [6, 7]]
    assert said[1].data.tolist() == [2.5, 3.5]
    assert said[0].shape == (2, 2)


def test_rows_of_a_stack_arrive_as_they_are() -> None:
    rows: list[Any] = [PlacedRow(stack(4), place) for place in range(4)]
    got, _, _ = sent(rows, NO_WANTS[:4])
    assert contents(got) == contents(rows)


def test_the_parts_of_a_block_hold_the_bytes_of_its_rows() -> None:
    rows = [PlacedRow(stack(3), place) for place in range(3)]
    (placed, *_), _, _ = sent(rows, NO_WANTS[:3])
    for block in (rows[0].block, placed.block):
        for at, part in enumerate(block.parts(1, 3)):
            assert part.tobytes() == rows[1][at].data.tobytes() + rows[2][at].data.tobytes()


def test_what_is_made_of_all_rows_is_made_once_for_the_same_question() -> None:
    asked = []

    def total(rows: Any, factor: int) -> int:
        asked.append(factor)
        return factor * rows.count

    block = stack(3)
    assert [block.derived(total, factor) for factor in (2, 2, 5, 2)] == [6, 6, 15, 6]
    assert asked == [2, 5, 2]


def test_neighbours_become_one_tensor_without_a_copy() -> None:
    rows = [PlacedRow(stack(5, rows=2), place) for place in range(5)]
    (placed, *_), _, payload = sent(rows, NO_WANTS[:5])
    x, y = placed.block.tensors(1, 3)
    assert x.data.tolist() == [[4, 5], [6, 7], [8, 9], [10, 11]]
    assert (x.shape, y.data.tolist()) == ((4, 2), [2.5, 3.5, 4.5, 5.5])
    assert np.shares_memory(x.data, payload)


def test_stretches_are_found_in_the_order_of_the_rows() -> None:
    one, other = stack(3), stack(2)
    rows = [PlacedRow(one, 0), PlacedRow(one, 1), PlacedRow(other, 0), PlacedRow(one, 2), PlacedRow(one, 1)]
    assert stretches(rows) == [(one, 0, 2), (other, 0, 1), (one, 2, 3), (one, 1, 2)]


def test_there_are_no_stretches_where_rows_differ_or_are_not_placed() -> None:
    assert stretches([PlacedRow(stack(2), 0), PlacedRow(stack(2, rows=2), 0)]) is None
    assert stretches([PlacedRow(stack(2), 0), [floats(1)]]) is None
    assert stretches([[floats(1)], PlacedRow(stack(2), 0)]) is None
