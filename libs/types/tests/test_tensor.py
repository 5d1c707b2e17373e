from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_types import DTYPES, Tensor, encode_strings
from tritonpy_types.errors import InvalidArgument

PLAIN = sorted(set(DTYPES) - {"BYTES"})
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(st.sampled_from(PLAIN), shapes, st.randoms())
def test_an_array_is_restored_from_its_bytes(
    datatype: str, shape: tuple[int, ...], random: object
) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(DTYPES[datatype])
    tensor = Tensor.from_numpy("x", array)
    restored = Tensor.from_buffer("x", datatype, shape, tensor.data.tobytes())
    assert (tensor.datatype, restored.shape, restored.nbytes) == (datatype, shape, array.nbytes)
    assert restored.numpy().dtype == array.dtype
    assert np.array_equal(restored.numpy(), array)


@given(
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(-3, 5), max_size=6).map(tuple),
    st.binary(max_size=40),
)
def test_any_bytes_of_any_shape_become_a_tensor(
    datatype: str, shape: tuple[int, ...], buffer: bytes
) -> None:
    tensor = Tensor.from_buffer("x", datatype, shape, buffer)
    assert (tensor.shape, tensor.nbytes) == (shape, len(buffer))


def test_a_buffer_is_not_copied() -> None:
    buffer = bytes(16)
    tensor = Tensor.from_buffer("x", "INT32", (4,), memoryview(buffer))
    assert tensor.data.ctypes.data == np.frombuffer(buffer, np.uint8).ctypes.data


@pytest.mark.parametrize("shape", [(-2, -2), (1,) * 65, (3,), (2**40, 2**40)])
def test_a_shape_that_does_not_match_keeps_the_raw_bytes(shape: tuple[int, ...]) -> None:
    assert Tensor.from_buffer("x", "INT32", shape, bytes(16)).data.tolist() == [0] * 16


def test_strided_and_byte_swapped_arrays_become_contiguous_and_native() -> None:
    tensor = Tensor.from_numpy("x", np.arange(6, dtype=">i4").reshape(2, 3).T)
    assert tensor.data.flags.c_contiguous
    assert tensor.data.dtype == np.int32
    assert tensor.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_scalar_keeps_its_empty_shape() -> None:
    assert Tensor.from_numpy("x", np.float32(1.5)).shape == ()


def test_text_arrays_become_bytes_tensors() -> None:
    tensor = Tensor.from_numpy("x", np.array([["a", "bä"], ["", "c"]]))
    assert (tensor.datatype, tensor.shape) == ("BYTES", (2, 2))
    assert tensor.numpy().tolist() == [[b"a", "bä".encode()], [b"", b"c"]]
    assert tensor.strings() == [b"a", "bä".encode(), b"", b"c"]


def test_the_offsets_of_a_bytes_tensor_are_computed_once() -> None:
    tensor = Tensor("x", "BYTES", (2,), encode_strings([b"a", b"bc"]))
    assert tensor.offsets() is tensor.offsets()
    assert tensor.offsets() == [0, 5, 11]


def test_a_broken_bytes_tensor_is_refused_when_it_is_read() -> None:
    with pytest.raises(InvalidArgument):
        Tensor.from_buffer("x", "BYTES", (1,), b"\x09\x00\x00\x00").numpy()


def test_bf16_keeps_its_bits() -> None:
    array = np.array([1.0, -0.0, np.inf, 3.140625], ml_dtypes.bfloat16)
    tensor = Tensor.from_numpy("x", array)
    assert tensor.datatype == "BF16"
    assert tensor.data.tobytes() == array.tobytes()


def test_tensors_on_other_devices_are_read_through_dlpack() -> None:
    class OnDevice:
        def __init__(self) -> None:
            self.array = np.arange(3, dtype=np.float32)

        def __dlpack__(self, **arguments: object) -> object:
            return self.array.__dlpack__(**arguments)  # type: ignore[arg-type]

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    tensor = Tensor("x", "FP32", (3,), OnDevice(), device=(2, 0))
    assert tensor.nbytes == 12
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_a_view_has_another_name_and_shape_and_the_same_data() -> None:
    tensor = Tensor.from_numpy("x", np.arange(6, dtype=np.int32).reshape(1, 6))
    view = tensor.view("y", (2, 3))
    assert (view.name, view.shape, view.data.shape) == ("y", (2, 3), (2, 3))
    assert np.shares_memory(view.data, tensor.data)
    assert tensor.view("y", tensor.shape).data is tensor.data
    with pytest.raises(ValueError, match="reshape"):
        tensor.view("y", (4,))


def test_a_view_of_a_bytes_or_device_tensor_shares_its_data() -> None:
    text = Tensor("x", "BYTES", (2,), encode_strings([b"a", b"bc"]))
    text.offsets()
    view = text.view("y", (2, 1))
    assert view.data is text.data
    assert view.offsets() is text.offsets()
    device = object()
    assert Tensor("x", "FP32", (2,), device, (2, 0)).view("y", (1, 2)).data is device
