from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Internal, InvalidArgument, TritonError
from tritonpy.frontend import TensorMetadata
from tritonpy_http_api.generate.tensor import ByteBudget, fit_shape, read_tensor

NO_FIT = "The schema can not convert input 'X' to tensor with proper shape"


def tensor(value, datatype="INT32", shape=(-1,), limit=10**6):
    return read_tensor(TensorMetadata("X", datatype, list(shape)), value, ByteBudget(limit))


@pytest.mark.parametrize(
    ("shape", "count", "fitted"),
    [
        ((-1,), 1, (1,)),
        ((-1,), 5, (5,)),
        ((-1, -1), 5, (1, 5)),
        ((-1, 3), 6, (2, 3)),
        ((-1, -1, 3), 6, (1, 2, 3)),
        ((-1, 3, -1), 6, (1, 3, 2)),
        ((2, -1, 3), 12, (2, 2, 3)),
        ((1,), 1, (1,)),
        ((2, 3), 6, (2, 3)),
        ((), 1, ()),
    ],
)
def test_the_last_variable_dimension_is_inferred(shape, count, fitted):
    assert fit_shape("X", shape, count) == fitted


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ((1,), 2),
        ((3,), 2),
        ((-1, 3), 4),
        ((2, 3), 5),
        ((2, 3), 12),
        ((), 2),
        ((0,), 1),
        ((-1, 0), 1),
    ],
)
def test_an_element_count_that_does_not_fit_is_refused(shape, count):
    with pytest.raises(InvalidArgument) as caught:
        fit_shape("X", shape, count)
    assert caught.value.message == NO_FIT


@given(st.lists(st.sampled_from([-1, 1, 2, 3, 5]), max_size=6), st.integers(1, 200))
def test_a_fitted_shape_holds_every_element_and_keeps_fixed_dimensions(shape, count):
    try:
        fitted = fit_shape("X", shape, count)
    except InvalidArgument:
        fixed = prod(dim for dim in shape if dim != -1)
        assert count % fixed or (-1 not in shape and count != fixed)
        return
    assert prod(fitted) == count
    assert len(fitted) == len(shape)
    assert all(dim in (-1, found) for dim, found in zip(shape, fitted, strict=True))
    variable = [found for dim, found in zip(shape, fitted, strict=True) if dim == -1]
    assert all(found == 1 for found in variable[:-1])


@pytest.mark.parametrize(
    ("datatype", "value", "expected"),
    [
        ("INT32", 7, [7]),
        ("INT32", [7, -8], [7, -8]),
        ("INT32", [[7], [8]], [7, 8]),
        ("INT32", [[7, 8], []], [7, 8]),
        ("INT8", 300, [44]),
        ("UINT64", 2**64 - 1, [2**64 - 1]),
        ("BOOL", [True, False], [True, False]),
        ("FP32", [1, 2.5], [1, 2.5]),
        ("FP32", 1e39, [np.inf]),
        ("FP64", 1e300, [1e300]),
        ("BYTES", "", [b""]),
        ("BYTES", ["a", "é"], [b"a", "é".encode()]),
    ],
)
def test_values_and_arrays_become_tensors(datatype, value, expected):
    found = tensor(value, datatype)
    assert (found.name, found.datatype, found.shape) == ("X", datatype, (len(expected),))
    assert found.numpy().tolist() == expected


@pytest.mark.parametrize("datatype", ["INT32", "FP16", "BYTES", "BOOL"])
def test_an_empty_array_is_a_tensor_without_dimensions(datatype):
    found = tensor([], datatype, (-1, 3))
    assert (found.shape, found.data.nbytes) == ((), 0)


def test_a_nested_empty_array_of_strings_is_empty():
    assert tensor([[]], "BYTES").shape == ()


def test_nested_strings_are_flattened():
    found = tensor([["a", "b"]], "BYTES", (1,))
    assert (found.shape, found.strings()) == ((1,), [b"a", b"b"])


@pytest.mark.parametrize(
    ("datatype", "value", "text"),
    [
        (
            "INT32",
            "a",
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            "INT32",
            None,
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            "INT32",
            1.5,
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            "INT64",
            2**63,
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            "UINT8",
            -1,
            "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        ("BOOL", 1, "Unable to parse 'data': attempt to access JSON non-boolean as boolean"),
        ("FP32", True, "Unable to parse 'data': attempt to access JSON non-number as double"),
        (
            "INT32",
            [[1, 2]],
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
        ),
        ("INT32", [[]], "Failed to parse 'data' field: shape does not match true shape"),
        (
            "BYTES",
            3,
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
        ),
        (
            "BYTES",
            [["a", 1]],
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
        ),
    ],
)
def test_values_of_the_wrong_type_or_number_are_refused(datatype, value, text):
    with pytest.raises(Internal) as caught:
        tensor(value, datatype)
    assert caught.value.message.startswith(text)  # what was sent follows


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_precision_is_refused(datatype):
    with pytest.raises(
        InvalidArgument, match=rf"receiving {datatype} data via JSON is not supported.*for input X"
    ):
        tensor(1, datatype)


def test_the_order_of_checks_depends_on_the_datatype():
    with pytest.raises(Internal, match="non-string"):
        tensor(["a", 1], "BYTES", (1,))
    with pytest.raises(InvalidArgument, match="proper shape"):
        tensor(["a", 1], "INT32", (1,))


def test_the_byte_budget_limits_the_total_size():
    budget, two = ByteBudget(20), TensorMetadata("X", "INT64", [-1])
    read_tensor(two, [1, 2], budget)
    read_tensor(TensorMetadata("S", "BYTES", [1]), "", budget)
    with pytest.raises(InvalidArgument) as caught:
        read_tensor(TensorMetadata("Y", "INT8", [1]), 1, budget)
    assert caught.value.message == (
        "request size of 20 bytes with input 'Y' of size 1 bytes exceeds the maximum allowed input size of 20. "
        "Use --http-max-input-size to increase the limit."
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner),
    max_leaves=12,
)
datatypes = st.sampled_from(
    ["BOOL", "INT8", "INT64", "UINT16", "UINT64", "FP16", "BF16", "FP32", "FP64", "BYTES"]
)


@given(datatypes, st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3), values)
def test_arbitrary_values_are_decoded_or_refused(datatype, shape, value):
    try:
        found = tensor(value, datatype, shape)
    except TritonError as error:
        assert error.message  # noqa: PT017
        return
    assert found.datatype == datatype
    if found.shape == ():
        assert found.data.nbytes == 0
    elif datatype != "BYTES":
        assert found.numpy().shape == found.shape
    else:
        assert found.offsets()[-1] == found.data.nbytes
