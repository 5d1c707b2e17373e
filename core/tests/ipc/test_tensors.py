from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tritonpy.ipc import ProtocolError
from tritonpy.ipc.endpoint import PLAIN_DTYPES
from tritonpy.ipc.frame import ALIGNMENT
from tritonpy.ipc.signatures import Known, Written
from tritonpy.ipc.tensors import copy_into, pack, unpack
from tritonpy.types import DTYPES

from .exchange import Said, contents, floats, requests, tensor


def packed(rows: list[list[Said]], wants: list[Any] | None = None) -> tuple[list[int], np.ndarray, Known]:
    written, known = Written(), Known(DTYPES)
    words, parts, size = pack(rows, wants or [None] * len(rows), written)
    known.learn(written.news())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    assert b"".join(parts) == payload.tobytes()
    return words, payload, known


@given(requests())
def test_what_is_packed_is_unpacked(said: tuple[list[list[Said]], list[Any]]) -> None:
    rows, wants = said
    words, payload, known = packed(rows, wants)
    got, wanted = unpack([9, 9, *words], 2, payload, known, Said)
    assert contents(got) == contents(rows)
    assert wanted == wants
    for row in got:
        for each in row:
            assert each.data.dtype == (np.uint8 if each.datatype == "BYTES" else DTYPES[each.datatype])
            assert each.data.shape == each.shape or each.datatype == "BYTES"


def test_neighbours_that_are_alike_cost_no_words_of_their_own() -> None:
    few, many = packed([[floats(3)]])[0], packed([[floats(3)]] * 50)[0]
    assert len(few) == len(many)


def test_each_block_of_a_tensor_begins_aligned() -> None:
    rows = [[tensor("INT8", (3,), b"abc", DTYPES, "A"), tensor("FP64", (1,), b"", DTYPES, "B")]] * 3
    words, payload, known = packed(rows)
    ((first, second), *_), _ = unpack(words, 0, payload, known, Said)
    start = payload.ctypes.data
    assert (first.data.ctypes.data - start, (second.data.ctypes.data - start) % ALIGNMENT) == (0, 0)


def test_nothing_is_copied_on_the_way_in() -> None:
    words, payload, known = packed([[floats(4)], [floats(4)], [tensor("BYTES", (1,), b"\1\0\0\0x", DTYPES)]])
    rows, _ = unpack(words, 0, payload, known, Said)
    assert all(np.shares_memory(each.data, payload) for row in rows for each in row)


@pytest.mark.parametrize("dtypes", [DTYPES, PLAIN_DTYPES], ids=["server", "worker"])
@pytest.mark.parametrize("datatype", sorted(set(DTYPES) - {"BYTES"}))
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_every_datatype_travels_in_every_kind_of_shape(
    datatype: str, shape: tuple[int, ...], dtypes: dict[str, Any]
) -> None:
    rows = [[tensor(datatype, shape, bytes(range(60)), dtypes)] for _ in range(2)]
    words, payload, known = packed(rows)
    got, _ = unpack(words, 0, payload, known, Said)
    assert contents(got) == contents(rows)
    assert [each.data.dtype for (each,) in got] == [DTYPES[datatype]] * 2


def broken(change: str) -> tuple[list[int], np.ndarray, Known]:
    words, payload, known = packed([[floats(4), tensor("BYTES", (1,), b"\1\0\0\0x", DTYPES, "S")]] * 2)
    if change == "short payload":
        return words, payload[:-16], known
    if change == "cut words":
        return words[:-1], payload, known
    place, value = {
        "more groups": (0, 2),
        "endless groups": (0, 2**63),
        "unknown signature": (1, 7),
        "more rows": (2, 3),
        "rows without end": (2, 2**40),
        "long string": (3, 2**63),
    }[change]
    words[place] = value
    return words, payload, known


@pytest.mark.parametrize(
    "change",
    [
        "short payload",
        "cut words",
        "more groups",
        "endless groups",
        "unknown signature",
        "more rows",
        "rows without end",
        "long string",
    ],
)
def test_words_that_do_not_fit_are_a_protocol_error(change: str) -> None:
    words, payload, known = broken(change)
    with pytest.raises(ProtocolError):
        unpack(words, 0, payload, known, Said)


def test_scalars_beyond_the_end_are_a_protocol_error() -> None:
    words, payload, known = packed([[tensor("FP32", (), b"1234", DTYPES)]])
    with pytest.raises(ProtocolError, match="beyond the end"):
        unpack(words, 0, payload[:0], known, Said)


@pytest.mark.parametrize("shape", [[2**70], [0, 2**70], [2**62, 2**62, 0], [0] * 100])
def test_shapes_that_no_array_can_have_are_a_protocol_error(shape: list[int]) -> None:
    known = Known(DTYPES)
    known.learn({"signatures": [[0, None, [["T", "FP32", shape]]]]})
    with pytest.raises(ProtocolError, match="do not fit"):
        unpack([1, 0, 1], 0, np.empty(0, np.uint8), known, Said)


def test_rows_without_tensors_are_limited_in_all_groups_together() -> None:
    known = Known(DTYPES)
    known.learn({"signatures": [[0, None, []]]})
    rows, _ = unpack([1, 0, 1 << 20], 0, np.empty(0, np.uint8), known, Said)
    assert len(rows) == 1 << 20
    with pytest.raises(ProtocolError, match="do not fit"):
        unpack([2, 0, 1 << 20, 0, 1], 0, np.empty(0, np.uint8), known, Said)
