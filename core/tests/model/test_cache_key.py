from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.cache_key import CacheKeyBuilder, cacheable_size
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import DATATYPES, InferRequest, OutputSpec, SequenceInfo, Tensor

SINK = RecordingSink().sink


def request(*tensors: Tensor, **fields: Any) -> InferRequest:
    return InferRequest("m", {tensor.name: tensor for tensor in tensors}, SINK, **fields)


def key(*tensors: Tensor, identity: bytes = b"m", **fields: Any) -> bytes:
    made = request(*tensors, **fields)
    return CacheKeyBuilder(identity).key(made, made.inputs)


def int32(name: str, values: Any) -> Tensor:
    return Tensor.from_numpy(name, np.array(values, np.int32))


def test_a_key_has_32_bytes() -> None:
    assert len(key(int32("A", [1]))) == 32


def test_the_order_of_the_inputs_does_not_matter() -> None:
    assert key(int32("A", [1]), int32("B", [2])) == key(int32("B", [2]), int32("A", [1]))


def test_the_order_of_the_parameters_does_not_matter() -> None:
    assert key(parameters={"a": 1, "b": 2}) == key(parameters={"b": 2, "a": 1})


def spelled_apart() -> list[bytes]:
    one = int32("A", [[1, 2]])
    text = Tensor.from_numpy("A", np.array([b"ab", b"c"], np.object_))
    return [
        key(one),
        key(one, identity=b"other"),
        key(int32("B", [[1, 2]])),
        key(int32("A", [[1], [2]])),
        key(int32("A", [1, 2])),
        key(int32("A", [[1]]), int32("B", [[2]])),
        key(Tensor("A", "UINT32", (1, 2), one.data.view(np.uint32))),
        key(Tensor("A", "FP32", (1, 2), one.data.view(np.float32))),
        key(text),
        key(Tensor.from_numpy("A", np.array([b"a", b"bc"], np.object_))),
        key(Tensor("A", "UINT8", (text.data.size,), text.data)),
        key(one, outputs={"O": OutputSpec("O")}),
        key(one, outputs={"O": OutputSpec("O", classification=2)}),
        key(one, outputs={"O": OutputSpec("O"), "P": OutputSpec("P")}),
        key(one, parameters={"p": 1}),
        key(one, parameters={"p": 1.0}),
        key(one, parameters={"p": True}),
        key(one, parameters={"p": "1"}),
        key(one, parameters={"p": "1", "q": ""}),
        key(),
    ]


def test_different_requests_have_different_keys() -> None:
    keys = spelled_apart()
    assert len(set(keys)) == len(keys)


def test_how_an_output_is_sent_does_not_matter() -> None:
    plain = key(outputs={"O": OutputSpec("O")})
    assert key(outputs={"O": OutputSpec("O", binary=True)}) == plain
    assert key(outputs={"O": OutputSpec("O", region="r", offset=4, byte_size=8)}) == plain


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_and_shape_has_a_key(datatype: str) -> None:
    itemsize = DATATYPES[datatype].itemsize
    for shape in ((), (3,), (0, 2)):
        count = int(np.prod(shape))
        data = bytes(itemsize * count) if itemsize else bytes(4 * count)
        assert key(Tensor.from_buffer("A", datatype, shape, data))


def test_a_bfloat_has_a_key_of_its_bits() -> None:
    ones, twos = (np.full(3, value, ml_dtypes.bfloat16) for value in (1, 2))
    assert key(Tensor("A", "BF16", (3,), ones)) != key(Tensor("A", "BF16", (3,), twos))


@given(
    st.lists(st.lists(st.integers(0, 1), max_size=3), max_size=3),
    st.lists(st.lists(st.integers(0, 1), max_size=3), max_size=3),
)
def test_keys_are_equal_where_the_inputs_are(one: list[list[int]], other: list[list[int]]) -> None:
    keys = [
        key(*[int32(f"I{index}", values) for index, values in enumerate(each)])
        for each in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)


def test_the_size_is_that_of_all_inputs() -> None:
    assert cacheable_size(request(int32("A", [1, 2]), int32("B", [1]))) == 12
    assert cacheable_size(request()) == 0


def test_an_input_outside_host_memory_is_not_cacheable() -> None:
    assert cacheable_size(request(Tensor("A", "FP32", (1,), object(), device=(2, 0)))) is None


def test_a_request_of_a_sequence_is_not_cacheable() -> None:
    assert cacheable_size(request(int32("A", [1]), sequence=SequenceInfo(1))) is None


def test_naming_every_output_gives_the_same_key_as_naming_none() -> None:
    keys, plain = CacheKeyBuilder(b"m", ["O", "P"]), request(int32("A", [1]))
    named = request(int32("A", [1]), outputs={name: OutputSpec(name) for name in "OP"})
    one = request(int32("A", [1]), outputs={"O": OutputSpec("O")})
    classified = request(
        int32("A", [1]), outputs={"O": OutputSpec("O"), "P": OutputSpec("P", classification=1)}
    )
    found = [keys.key(each, each.inputs) for each in (plain, named, one, classified)]
    assert found[0] == found[1]
    assert len(set(found)) == 3
