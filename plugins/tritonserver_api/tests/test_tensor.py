from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from tritonserver import (
    DataType,
    DLDeviceType,
    InvalidArgumentError,
    MemoryBuffer,
    MemoryType,
    Tensor,
    UnsupportedError,
)

from tritonpy_tritonserver_api import dlpack
from tritonpy_tritonserver_api.tensor import memory_type_of, of_server, tensor_of, to_server

TYPES = {
    DataType.BOOL: np.bool_, DataType.INT8: np.int8, DataType.INT16: np.int16,
    DataType.INT32: np.int32, DataType.INT64: np.int64, DataType.UINT8: np.uint8,
    DataType.UINT16: np.uint16, DataType.UINT32: np.uint32, DataType.UINT64: np.uint64,
    DataType.FP16: np.float16, DataType.FP32: np.float32, DataType.FP64: np.float64,
}  # fmt: skip


@pytest.mark.parametrize(("data_type", "dtype"), TYPES.items())
def test_memory_is_shared_with_numpy_in_both_directions(data_type: DataType, dtype: type) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = Tensor.from_dlpack(array)
    assert (tensor.data_type, list(tensor.shape), tensor.size) == (data_type, [2, 3], array.nbytes)
    assert tensor.data_ptr == array.ctypes.data
    assert (tensor.memory_type, tensor.memory_type_id) == (MemoryType.CPU, 0)
    back = np.from_dlpack(tensor)
    assert back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)


def test_types_that_numpy_does_not_have_are_exchanged() -> None:
    buffer = MemoryBuffer.from_dlpack(np.arange(4, dtype=np.uint16))
    tensor = Tensor(DataType.BF16, [2, 2], buffer)
    assert Tensor.from_dlpack(tensor) == Tensor(
        DataType.BF16, [2, 2], MemoryBuffer(buffer.data_ptr, MemoryType.CPU, 0, 8, tensor)
    )


def test_an_array_keeps_its_tensor_and_the_tensor_its_owner() -> None:
    owner = np.ones(10)
    tensor = Tensor.from_dlpack(owner)
    assert sys.getrefcount(owner) - 1 == 2
    array = np.from_dlpack(tensor)
    assert sys.getrefcount(tensor) - 1 == 2
    del owner, tensor
    gc.collect()
    assert array.sum() == 10
    del array
    assert dlpack._offered == {}


def test_an_unused_capsule_is_released() -> None:
    tensor = Tensor.from_dlpack(np.ones(3))
    capsule = tensor.__dlpack__()
    assert len(dlpack._offered) == 1
    del capsule
    assert dlpack._offered == {}
    assert sys.getrefcount(tensor) - 1 == 1


@pytest.mark.parametrize(
    "value", [np.ones((4, 4))[:, 1], np.ones((4, 4)).T, np.ones(3, np.complex64), "text", 3]
)
def test_memory_that_cannot_be_shared_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        Tensor.from_dlpack(value)
    with pytest.raises(InvalidArgumentError):
        MemoryBuffer.from_dlpack(value)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 4)])
def test_shapes_without_elements_and_scalars_are_exchanged(shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32)
    np.testing.assert_array_equal(np.from_dlpack(Tensor.from_dlpack(array)), array)
    sent = to_server("x", tensor_of(array))
    assert (sent.shape, sent.nbytes) == (shape, array.nbytes)


@pytest.mark.parametrize("given", [[["a", "bü"], ["", "c"]], np.array([["a", "bü"], ["", "c"]])])
def test_texts_are_in_the_form_of_the_wire(given: object) -> None:
    tensor = Tensor.from_string_array(given)  # type: ignore[arg-type]
    assert (tensor.data_type, tuple(tensor.shape)) == (DataType.BYTES, (2, 2))
    assert tensor.size == 4 * 4 + 5
    assert tensor.to_string_array().tolist() == [["a", "bü"], ["", "c"]]
    assert tensor.to_bytes_array().tolist() == [[b"a", "bü".encode()], [b"", b"c"]]
    with pytest.raises(UnsupportedError, match="BYTES"):
        np.from_dlpack(tensor)


def test_only_texts_are_texts() -> None:
    with pytest.raises(InvalidArgumentError, match="Got INT64"):
        Tensor.from_bytes_array([1, 2])  # type: ignore[list-item]
    with pytest.raises(InvalidArgumentError, match="Tensor has data type"):
        tensor_of([1.5]).to_bytes_array()


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ([True, False], DataType.BOOL),
        ([[1, 2]], DataType.INT64),
        ([1.0], DataType.FP64),
        (np.float16(2), DataType.FP16),
        ([b"a"], DataType.BYTES),
        (np.array(["x"], object), DataType.BYTES),
        (np.frombuffer(b"abcd", np.uint8), DataType.UINT8),  # memory that cannot be written
    ],
)
def test_values_become_tensors(value: object, data_type: DataType) -> None:
    assert tensor_of(value).data_type is data_type


@pytest.mark.parametrize("value", [[[1], [1, 2]], {"a": 1}, 3, None, np.array([1j])])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        tensor_of(value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("cpu", (MemoryType.CPU, 0)),
        ("GPU:3", (MemoryType.GPU, 3)),
        ("cpu_pinned", (MemoryType.CPU_PINNED, 0)),
        (MemoryType.GPU, (MemoryType.GPU, 0)),
        ((MemoryType.GPU, 2), (MemoryType.GPU, 2)),
        ((DLDeviceType.kDLCUDA, 1), (MemoryType.GPU, 1)),
    ],
)
def test_memory_has_names(given: object, expected: tuple[MemoryType, int]) -> None:
    assert memory_type_of(given) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given", ["disk", "gpu:x", "gpu:1:2", "", 3, (DLDeviceType.kDLMetal, 0), ("cpu", 0)]
)
def test_unknown_names_of_memory_are_refused(given: object) -> None:
    with pytest.raises(InvalidArgumentError):
        memory_type_of(given)  # type: ignore[arg-type]


def test_a_tensor_is_moved_only_if_it_must_be() -> None:
    tensor = tensor_of([1.0])
    assert tensor.to_host() is tensor
    assert tensor.to_device("cpu:0") is tensor
    with pytest.raises(UnsupportedError, match="not supported"):
        tensor.to_device("cpu_pinned")
    with pytest.raises(UnsupportedError, match="stream 5 not supported"):
        tensor.__dlpack__(stream=5)


def test_a_tensor_of_the_server_shares_the_memory() -> None:
    tensor = of_server(to_server("x", tensor_of([[1.0, 2.0]])))
    assert np.from_dlpack(tensor).tolist() == [[1.0, 2.0]]
