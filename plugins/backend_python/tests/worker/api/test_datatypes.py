from __future__ import annotations

import numpy as np
import pytest

from tritonpy_worker.api.datatypes import (
    STORED,
    TRITON_STRING_TO_NUMPY,
    DataType,
    name_of,
    numpy_to_triton_type,
    triton_string_to_numpy,
    triton_to_numpy_type,
)

KINDS = [
    ("BOOL", np.bool_), ("UINT8", np.uint8), ("UINT16", np.uint16), ("UINT32", np.uint32), ("UINT64", np.uint64),
    ("INT8", np.int8), ("INT16", np.int16), ("INT32", np.int32), ("INT64", np.int64), ("FP16", np.float16),
    ("FP32", np.float32), ("FP64", np.float64), ("BYTES", np.object_),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "name", "kind"), [(number, *each) for number, each in enumerate(KINDS, 1)]
)
def test_numbers_names_and_numpy_types_match(number, name, kind):
    assert DataType[name] == number
    assert triton_to_numpy_type(number) is kind
    assert numpy_to_triton_type(kind) == number
    assert numpy_to_triton_type(np.dtype(kind)) == number
    assert name_of(np.dtype(kind)) == name


def test_numpy_bytes_are_strings():
    assert numpy_to_triton_type(np.bytes_) == 13
    assert name_of(np.dtype("S7")) == "BYTES"


@pytest.mark.parametrize(
    "kind", [complex, float, int, bool, bytes, object, "float32", 5, np.dtype("U5"), np.dtype("S5")]
)
def test_other_types_have_no_number(kind):
    assert numpy_to_triton_type(kind) is None


@pytest.mark.parametrize("number", [0, 14, -1, "FP32"])
def test_other_numbers_have_no_type(number):
    assert triton_to_numpy_type(number) is None


@pytest.mark.parametrize("dtype", ["U5", ">f4", "c8", "M8[s]"])
def test_other_arrays_have_no_name(dtype):
    assert name_of(np.dtype(dtype)) is None


def test_types_of_a_configuration():
    names = [f"TYPE_{name}" for name, _ in KINDS[:-1]] + ["TYPE_STRING"]
    assert set(TRITON_STRING_TO_NUMPY) == set(names)
    assert triton_string_to_numpy("TYPE_BOOL") is bool
    assert triton_string_to_numpy("TYPE_FP32") is np.float32
    assert triton_string_to_numpy("TYPE_STRING") is np.object_
    with pytest.raises(KeyError):
        triton_string_to_numpy("TYPE_BF16")


def test_elements_in_memory():
    assert set(STORED) == {name for name, _ in KINDS[:-1]} | {"BF16"}
    assert STORED["BF16"] == np.uint16
    assert STORED["BOOL"] == np.bool_
