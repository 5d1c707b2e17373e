from __future__ import annotations

import struct
import zlib
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPES, Tensor
from tritonpy_cache_redis.value import BrokenValue, pack, unpack

OUT = Tensor.from_numpy("OUT", np.array([[1, 2, 3]], np.int16))
TEXT = Tensor.from_numpy("TEXT", np.array([b"", b"\x00x"], np.object_))


def signed(head, data=b"", version=1, magic=b"TPYC"):
    """Return a value with a correct checksum and arbitrary content."""
    head = msgspec.msgpack.encode(head)
    body = head + bytes(-len(head) % 16) + data
    return struct.pack("<4sIII", magic, version, zlib.crc32(body), len(head)) + body


@pytest.mark.parametrize("name", DATATYPES)
@pytest.mark.parametrize("shape", [(), (0, 2), (3,), (2, 3)])
def test_every_datatype_and_shape_is_restored(name, shape):
    data, count = Random(0), int(np.prod(shape))
    if name == "BYTES":
        tensor = Tensor.from_numpy("A", np.full(shape, b"text", np.object_))
    else:
        tensor = Tensor.from_buffer(
            "A", name, shape, data.randbytes(DATATYPES[name].itemsize * count)
        )
    first, second = unpack(pack([tensor, OUT]))
    assert (first.name, first.datatype, first.shape) == ("A", name, shape)
    assert first.data.tobytes() == tensor.data.tobytes()
    assert second.numpy().tolist() == [[1, 2, 3]]


def test_arrays_are_aligned():
    doubles = Tensor.from_numpy("D", np.array([1.5], np.float64))
    for found in unpack(pack([TEXT, doubles, OUT, doubles])):
        assert found.data.flags.aligned


def test_an_empty_list_of_outputs_is_restored():
    assert unpack(pack([])) == []


def test_arrays_are_stored_in_c_order():
    turned = Tensor("T", "INT32", (3, 2), np.arange(6, dtype=np.int32).reshape(2, 3).T)
    (found,) = unpack(pack([turned]))
    assert found.numpy().tolist() == turned.data.tolist()


def test_every_changed_byte_is_detected():
    value = pack([OUT, TEXT])
    for place in range(len(value)):
        changed = bytearray(value)
        changed[place] ^= 1 + place % 255
        with pytest.raises(BrokenValue):
            unpack(bytes(changed))


def test_every_truncated_value_is_detected():
    value = pack([OUT, TEXT])
    for length in range(len(value)):
        with pytest.raises(BrokenValue):
            unpack(value[:length])
    with pytest.raises(BrokenValue):
        unpack(value + b"\x00")


@given(st.binary(max_size=200))
def test_random_bytes_are_rejected(data):
    with pytest.raises(BrokenValue):
        unpack(data)


@pytest.mark.parametrize(
    "value",
    [
        signed([("A", "INT32", (1,), 4)], bytes(16), version=2),
        signed([("A", "INT32", (1,), 4)], bytes(16), magic=b"TPYD"),
        signed([("A", "INT32", (2,), 4)], bytes(16)),
        signed([("A", "INT32", (-1,), 4)], bytes(16)),
        signed([("A", "NONSENSE", (1,), 4)], bytes(16)),
        signed([("A", "INT32", (1,), 4)]),
        signed([("A", "INT32", (1,), 4)], bytes(32)),
        signed([("A", "INT32", (1,), -4)], bytes(16)),
        signed([("A", "BYTES", (1,), 1 << 40)], bytes(16)),
        signed({"A": 1}),
        signed("A"),
    ],
)
def test_inconsistent_heads_are_rejected(value):
    with pytest.raises(BrokenValue):
        unpack(value)
