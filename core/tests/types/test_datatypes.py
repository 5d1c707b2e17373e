from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritonpy.types import DATATYPE_OF_NUMBER, DATATYPES, DTYPES, ITEMSIZES, datatype_of
from tritonpy_protos.model_config_pb2 import DataType


def test_names_and_numbers_are_those_of_the_model_configuration() -> None:
    for kind in DATATYPES.values():
        assert DataType.Value(kind.config_name) == kind.number
        assert DATATYPE_OF_NUMBER[kind.number] is kind
    assert set(DataType.values()) == {0, *DATATYPE_OF_NUMBER}


def test_every_type_is_found_by_its_dtype() -> None:
    for name, dtype in DTYPES.items():
        assert datatype_of(dtype) == name
        assert ITEMSIZES[name] == (0 if name == "BYTES" else dtype.itemsize)
    assert DTYPES["BF16"] == ml_dtypes.bfloat16


def test_text_and_byte_swapped_dtypes_are_supported() -> None:
    assert datatype_of(np.dtype("U5")) == datatype_of(np.dtype("S5")) == "BYTES"
    assert datatype_of(np.dtype(">i4")) == "INT32"


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "i4,f4"])
def test_an_unsupported_dtype_raises_key_error(dtype: str) -> None:
    with pytest.raises(KeyError):
        datatype_of(np.dtype(dtype))
