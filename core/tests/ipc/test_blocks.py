from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.blocks import Placed, PlacedInputs, PlacedRow
from tritonpy.ipc.signatures import Known, Written
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
