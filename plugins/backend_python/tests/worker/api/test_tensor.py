from __future__ import annotations

import copy
import weakref

import numpy as np
import pytest

from tritonpy_worker.api import strings
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.outgoing_tensor import outgoing_tensor
from tritonpy_worker.api.tensor import Tensor

NUMBERS = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def message(function, *arguments):
    with pytest.raises(TritonModelException) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)])
def test_an_array_is_not_copied(dtype, shape):
    array = np.ones(shape, dtype)
    tensor = Tensor("x", array)
    assert tensor.as_numpy() is array
    assert tensor.shape() == list(shape)
    assert tensor.name() == "x"
    assert tensor.is_cpu()
    assert tensor.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(
    ("dtype", "number"), [(dtype, number) for number, dtype in enumerate(NUMBERS, 1)]
)
def test_the_type_is_tritons_number(dtype, number):
    datatype = Tensor("x", np.zeros(1, dtype)).triton_dtype()
    assert datatype == number
    assert isinstance(datatype, int)


def test_strings_and_bf16_have_tritons_numbers_too():
    assert Tensor("x", np.array([b"a"])).triton_dtype() == 13
    assert Tensor.received("x", "BF16", (1,), np.zeros(1, np.uint16)).triton_dtype() == 14


def test_an_array_in_another_order_is_copied_into_rows():
    array = np.arange(6.0).reshape(2, 3).T
    kept = Tensor("x", array).as_numpy()
    assert kept.flags.c_contiguous
    assert kept.tolist() == array.tolist()
    assert Tensor("x", array[::2]).as_numpy().tolist() == array[::2].tolist()


@pytest.mark.parametrize("dtype", ["U3", complex, ">f4", "M8[s]", [("a", "f4")], np.longdouble])
def test_unsupported_types_are_rejected(dtype):
    assert message(Tensor, "x", np.zeros(2, dtype)) == "NumPy dtype is not supported."


def test_an_alias_of_a_type_is_the_type():
    assert Tensor("x", np.zeros(2, "q")).triton_dtype() == 9


@pytest.mark.parametrize(
    "make", [lambda: Tensor("", np.zeros(1)), lambda: Tensor.from_dlpack("", np.zeros(1))]
)
def test_an_empty_name_is_rejected(make):
    assert message(make) == "Tensor name cannot be an empty string."


@pytest.mark.parametrize(
    "arguments", [("x", [1, 2]), ("x", 3.0), (5, np.zeros(2)), (None, np.zeros(2)), ("x", None)]
)
def test_wrong_argument_types_have_tritons_error(arguments):
    with pytest.raises(TypeError) as caught:
        Tensor(*arguments)
    assert str(caught.value) == (
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)\n\n"
        f"Invoked with: {arguments[0]!r}, {arguments[1]!r}"
    )


def test_a_name_may_be_bytes():
    assert Tensor(b"x", np.zeros(1)).name() == "x"


def test_strings_are_encoded_when_the_tensor_is_created():
    array = np.array([b"before"], object)
    tensor = Tensor("x", array)
    array[0] = b"after"
    assert strings.decode(outgoing_tensor(tensor).data, (1,)).tolist() == [b"before"]
    assert tensor.as_numpy() is array


def test_received_strings_are_decoded_once_and_sent_unchanged(monkeypatch):
    data = strings.encode(np.array([b"a", b"bc"], object))
    tensor = Tensor.received("x", "BYTES", (2,), data)
    array = tensor.as_numpy()
    assert array.tolist() == [b"a", b"bc"]
    assert tensor.as_numpy() is array
    array[0] = b"changed"
    monkeypatch.setattr(strings, "encode", None)
    assert outgoing_tensor(tensor).data is data


def test_malformed_strings_raise_when_they_are_decoded(monkeypatch):
    tensor = Tensor.received("x", "BYTES", (1,), np.frombuffer(b"\5\0\0\0a", np.uint8))
    assert outgoing_tensor(tensor).data.size == 5
    assert message(tensor.as_numpy) == "Invalid bytes tensor data: string extends beyond buffer"


def test_changes_of_a_received_array_are_sent():
    data = np.zeros(3, np.float32)
    tensor = Tensor.received("x", "FP32", (3,), data)
    tensor.as_numpy()[:] = 7
    assert outgoing_tensor(tensor).data.tolist() == [7, 7, 7]


def test_bf16_cannot_be_converted_to_numpy():
    tensor = Tensor.received("x", "BF16", (2,), np.array([0x3F80, 0x4000], np.uint16))
    assert message(tensor.as_numpy) == (
        "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
    )


def test_strings_cannot_be_exported_by_dlpack():
    tensor = Tensor("x", np.array([b"a"]))
    for function in (tensor.to_dlpack, tensor.__dlpack__):
        assert message(function) == "DLPack does not have support for string tensors."


def test_the_returned_shape_is_a_copy():
    tensor = Tensor("x", np.zeros((2, 3)))
    tensor.shape().append(4)
    assert tensor.shape() == [2, 3]


def test_tensors_compare_by_identity_and_support_weak_references():
    one, same = Tensor("x", np.zeros(1)), Tensor("x", np.zeros(1))
    assert one not in (same,)
    assert one in (same, one)
    assert len({one, same, one}) == 2
    assert weakref.ref(one)() is one
    with pytest.raises(AttributeError):
        one.note = 1  # type: ignore[attr-defined]


def test_a_copied_tensor_shares_the_array():
    tensor = Tensor("x", np.zeros(2))
    assert copy.copy(tensor).as_numpy() is tensor.as_numpy()
