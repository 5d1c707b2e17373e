from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tritonpy_ipc import ProtocolError
from tritonpy_ipc.endpoint import PLAIN_DTYPES
from tritonpy_ipc.frame import ALIGNMENT
from tritonpy_ipc.signatures import SignatureReader, SignatureWriter
from tritonpy_ipc.tensors import copy_into, pack, unpack
from tritonpy_types import DTYPES

from .exchange import SampleTensor, contents, floats, requests, tensor


def packed(
    rows: list[list[SampleTensor]], requested: list[Any] | None = None
) -> tuple[list[int], np.ndarray, SignatureReader]:
    writer, reader = SignatureWriter(), SignatureReader(DTYPES)
    words, parts, size = pack(rows, requested or [None] * len(rows), writer)
    reader.learn(writer.new_signatures())
    payload = np.empty(size, np.uint8)
    copy_into(payload, parts)
    assert b"".join(parts) == payload.tobytes()
    return words, payload, reader


@given(requests())
def test_packed_rows_are_unpacked_unchanged(
    drawn: tuple[list[list[SampleTensor]], list[Any]],
) -> None:
    rows, requested = drawn
    words, payload, reader = packed(rows, requested)
    got, got_requested = unpack([9, 9, *words], 2, payload, reader, SampleTensor)
    assert contents(got) == contents(rows)
    assert got_requested == requested
    for row in got:
        for each in row:
            assert each.data.dtype == (
                np.uint8 if each.datatype == "BYTES" else DTYPES[each.datatype]
            )
            assert each.data.shape == each.shape or each.datatype == "BYTES"


def test_consecutive_rows_of_one_signature_need_no_words_each() -> None:
    few, many = packed([[floats(3)]])[0], packed([[floats(3)]] * 50)[0]
    assert len(few) == len(many)


def test_each_block_of_a_tensor_begins_aligned() -> None:
    rows = [[tensor("INT8", (3,), b"abc", DTYPES, "A"), tensor("FP64", (1,), b"", DTYPES, "B")]] * 3
    words, payload, reader = packed(rows)
    ((first, second), *_), _ = unpack(words, 0, payload, reader, SampleTensor)
    start = payload.ctypes.data
    assert (first.data.ctypes.data - start, (second.data.ctypes.data - start) % ALIGNMENT) == (0, 0)


def test_nothing_is_copied_on_the_way_in() -> None:
    words, payload, reader = packed(
        [[floats(4)], [floats(4)], [tensor("BYTES", (1,), b"\1\0\0\0x", DTYPES)]]
    )
    rows, _ = unpack(words, 0, payload, reader, SampleTensor)
    assert all(np.shares_memory(each.data, payload) for row in rows for each in row)


@pytest.mark.parametrize("dtypes", [DTYPES, PLAIN_DTYPES], ids=["server", "worker"])
@pytest.mark.parametrize("datatype", sorted(set(DTYPES) - {"BYTES"}))
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_every_datatype_travels_in_every_kind_of_shape(
    datatype: str, shape: tuple[int, ...], dtypes: dict[str, Any]
) -> None:
    rows = [[tensor(datatype, shape, bytes(range(60)), dtypes)] for _ in range(2)]
    words, payload, reader = packed(rows)
    got, _ = unpack(words, 0, payload, reader, SampleTensor)
    assert contents(got) == contents(rows)
    assert [each.data.dtype for (each,) in got] == [DTYPES[datatype]] * 2


def broken(change: str) -> tuple[list[int], np.ndarray, SignatureReader]:
    words, payload, reader = packed(
        [[floats(4), tensor("BYTES", (1,), b"\1\0\0\0x", DTYPES, "S")]] * 2
    )
    if change == "short payload":
        return words, payload[:-16], reader
    if change == "cut words":
        return words[:-1], payload, reader
    place, value = {
        "more groups": (0, 2),
        "endless groups": (0, 2**63),
        "unknown signature": (1, 7),
        "more rows": (2, 3),
        "rows without end": (2, 2**40),
        "long string": (3, 2**63),
    }[change]
    words[place] = value
    return words, payload, reader


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
def test_words_that_do_not_match_the_payload_are_a_protocol_error(change: str) -> None:
    words, payload, reader = broken(change)
    with pytest.raises(ProtocolError):
        unpack(words, 0, payload, reader, SampleTensor)


def test_scalars_beyond_the_end_are_a_protocol_error() -> None:
    words, payload, reader = packed([[tensor("FP32", (), b"1234", DTYPES)]])
    with pytest.raises(ProtocolError, match="beyond the end"):
        unpack(words, 0, payload[:0], reader, SampleTensor)


@pytest.mark.parametrize("shape", [[2**70], [0, 2**70], [2**62, 2**62, 0], [0] * 100])
def test_shapes_that_no_array_can_have_are_a_protocol_error(shape: list[int]) -> None:
    reader = SignatureReader(DTYPES)
    reader.learn({"signatures": [[0, None, [["T", "FP32", shape]]]]})
    with pytest.raises(ProtocolError, match="invalid tensors"):
        unpack([1, 0, 1], 0, np.empty(0, np.uint8), reader, SampleTensor)


def test_rows_without_tensors_are_limited_in_all_groups_together() -> None:
    reader = SignatureReader(DTYPES)
    reader.learn({"signatures": [[0, None, []]]})
    rows, _ = unpack([1, 0, 1 << 20], 0, np.empty(0, np.uint8), reader, SampleTensor)
    assert len(rows) == 1 << 20
    with pytest.raises(ProtocolError, match="invalid tensors"):
        unpack([2, 0, 1 << 20, 0, 1], 0, np.empty(0, np.uint8), reader, SampleTensor)
