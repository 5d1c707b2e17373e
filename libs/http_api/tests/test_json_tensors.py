from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tritonpy import DTYPES, Internal, InvalidArgument, Tensor, TritonError
from tritonpy_http_api.json_tensors import element_count, from_json, to_json

LIMIT = 1 << 20
IN_JSON = [name for name in DTYPES if name not in ("FP16", "BF16", "BYTES")]


def read(datatype, shape, data, limit=LIMIT):
    return from_json("x", datatype, tuple(shape), data, limit)


@given(st.data(), st.sampled_from(IN_JSON), hnp.array_shapes(min_dims=1, max_dims=4, max_side=3))
def test_numbers_round_trip_nested_and_flat(data, datatype, shape):
    array = data.draw(hnp.arrays(DTYPES[datatype], shape))
    tensor = Tensor.from_numpy("x", array)
    written = json.loads(msgspec.json.encode(to_json(tensor)))
    for form in (written, array.tolist()):
        found = read(datatype, shape, form)
        assert found.shape == shape
        np.testing.assert_array_equal(found.numpy(), array)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_strings_round_trip(texts):
    tensor = read("BYTES", [len(texts)], texts)
    assert tensor.strings() == [text.encode() for text in texts]
    assert to_json(tensor) == texts


def test_irregular_nesting_is_read_in_order():
    np.testing.assert_array_equal(read("INT32", [1, 4], [[1, 2], [3, [4]]]).numpy(), [[1, 2, 3, 4]])


def test_small_integers_wrap_as_in_triton():
    assert read("UINT8", [2], [257, 300]).numpy().tolist() == [1, 44]
    assert read("INT8", [2], [200, -200]).numpy().tolist() == [-56, 56]
    assert read("INT32", [2], [2**32 + 5, 2**62]).numpy().tolist() == [5, 0]


def test_a_double_too_large_for_a_float_is_infinite():
    assert read("FP32", [1], [1e300]).numpy().tolist() == [math.inf]


@pytest.mark.parametrize(
    ("datatype", "value", "words"),
    [
        ("INT32", 4.0, "non-signed-integer as signed-integer"),
        ("INT32", "4", "non-signed-integer as signed-integer"),
        ("INT32", True, "non-signed-integer as signed-integer"),
        ("INT64", 2**63, "non-signed-integer as signed-integer"),
        ("UINT8", -1, "non-unsigned-integer as unsigned-integer"),
        ("UINT64", 2**64, "non-unsigned-integer as unsigned-integer"),
        ("BOOL", 1, "non-boolean as boolean"),
        ("FP32", "1", "non-number as double"),
        ("FP64", True, "non-number as double"),
        ("FP32", {}, "non-number as double"),
        ("FP32", None, "non-number as double"),
    ],
)
def test_values_of_the_wrong_type_are_refused(datatype, value, words):
    with pytest.raises(Internal) as caught:
        read(datatype, [1], [value])
    assert caught.value.message.startswith(
        f"Unable to parse 'data': attempt to access JSON {words}: "
    )


@pytest.mark.parametrize(
    ("datatype", "values", "hint"),
    [
        (
            "FP32",
            [1, "a" * 50],
            f"value 1 of input 'x' is \"{'a' * 39}..., datatype FP32 takes numbers",
        ),
        ("INT32", [1, 2.5], "value 1 of input 'x' is 2.5, datatype INT32 takes whole numbers"),
        (
            "UINT8",
            [None, 1],
            "value 0 of input 'x' is null, datatype UINT8 takes whole numbers from 0 on",
        ),
        ("BOOL", [1, True], "value 0 of input 'x' is 1, datatype BOOL takes true and false"),
        ("FP64", [{}, 1], "value 0 of input 'x' is an object, datatype FP64 takes numbers"),
        ("UINT8", [-1, 1], "a value of input 'x' does not fit into datatype UINT8"),
        ("BYTES", ["a", 7], "value 1 of input 'x' is 7, datatype BYTES takes strings"),
        ("INT32", [1], "shape [2] of input 'x' takes 2 values, 'data' has 1"),
        ("INT32", [[1, 2], [3]], "shape [2] of input 'x' takes 2 values, 'data' has 3"),
        ("INT32", "7", "'data' of input 'x' is \"7\", it takes a list"),
        ("FLOAT32", [1, 2], "there is no datatype 'FLOAT32'; did you mean 'FP32'?"),
        ("TYPE_INT64", [1, 2], "there is no datatype 'TYPE_INT64'; did you mean 'INT64'?"),
        ("string", ["a", "b"], "there is no datatype 'string'; did you mean 'BYTES'?"),
    ],
)
def test_errors_name_the_value_and_the_expected_type(datatype, values, hint):
    with pytest.raises(TritonError) as caught:
        read(datatype, [2], values)
    assert caught.value.message.endswith(f": {hint}")


def test_a_string_tensor_accepts_strings_only():
    with pytest.raises(
        Internal,
        match=r"^Unable to parse JSON bytes array: attempt to access JSON non-string as string: ",
    ):
        read("BYTES", [1], [1])


def test_too_many_and_too_few_values_are_refused():
    with pytest.raises(
        Internal,
        match=r"^Unable to parse 'data': Shape does not match true shape of 'data' field: ",
    ):
        read("INT32", [2], [1, 2, 3])
    with pytest.raises(
        Internal, match=r"^Failed to parse 'data' field: shape does not match true shape: "
    ):
        read("INT32", [2], [1])


def test_data_must_be_a_list():
    with pytest.raises(
        Internal, match=r"^Unable to parse 'data': attempt to access JSON non-array as array: "
    ):
        read("INT32", [2], 3)


def test_half_precision_is_refused_both_ways():
    for datatype in ("FP16", "BF16"):
        with pytest.raises(
            InvalidArgument,
            match=rf"^receiving {datatype} data via JSON is not supported. .* for input x$",
        ):
            read(datatype, [1], [1])
        with pytest.raises(
            InvalidArgument,
            match=rf"^sending {datatype} data via JSON is not supported. .* for output$",
        ):
            to_json(Tensor("y", datatype, (1,), np.zeros(1, DTYPES[datatype])))


def test_an_unknown_datatype_is_refused():
    for shape in ([1], [0]):
        with pytest.raises(
            InvalidArgument,
            match=r"^invalid datatype for input x: there is no datatype 'INT33': it is one of BOOL, ",
        ):
            read("INT33", shape, [1])


@pytest.mark.parametrize("shape", [[0], [0, 4], [2, 0, 3], [], [0, 2**63], [0] * 70])
def test_a_tensor_without_elements_ignores_its_data(shape):
    for datatype in ("INT32", "BYTES"):
        tensor = read(datatype, shape, "anything")
        assert (tensor.nbytes, tensor.shape) == (0, tuple(shape))


def test_size_overflows_are_refused():
    with pytest.raises(InvalidArgument, match=r"contains one or more invalid dimensions"):
        read("INT32", [2**63], [1])
    with pytest.raises(InvalidArgument, match=r"causes total element count to exceed maximum size"):
        read("INT32", [2**62, 2**62], [1])
    with pytest.raises(InvalidArgument, match=r"byte size overflow for input 'x'"):
        read("INT32", [2**62], [1])
    with pytest.raises(
        InvalidArgument,
        match=r"JSON input 'x' has a byte_size \(4398046511104 bytes\) that exceeds",
    ):
        read("INT32", [2**40], [1])
    with pytest.raises(InvalidArgument, match=r"more dimensions than a tensor can have"):
        read("INT32", [1] * 70, [1])


def test_the_size_limit_counts_the_wire_form_of_strings():
    assert read("BYTES", [1], ["abcd"], limit=8).nbytes == 8
    with pytest.raises(InvalidArgument, match=r"JSON input 'x' has a byte_size \(8 bytes\)"):
        read("BYTES", [1], ["abcd"], limit=7)


def nested(levels, value):
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_ends_at_100_levels():
    assert read("INT32", [1], nested(99, 7)).numpy().tolist() == [7]
    for datatype, prefix in (("INT32", "Unable to parse 'data': "), ("BYTES", "")):
        with pytest.raises(InvalidArgument) as caught:
            read(datatype, [1], nested(100, 7))
        assert (
            caught.value.message
            == f"{prefix}JSON nesting depth exceeds maximum allowed limit (100)"
        )


@given(st.lists(st.integers(0, 2**64)))
def test_the_element_count_is_a_product_or_an_error(shape):
    try:
        count = element_count("x", tuple(shape))
    except InvalidArgument:
        assert 0 not in shape
        assert math.prod(shape) > 2**63 - 1
    except Internal:
        assert 2**64 in shape
    else:
        assert count == (math.prod(shape) if shape else 0)


def test_a_dimension_above_64_bits_is_refused():
    with pytest.raises(
        Internal, match="Unable to parse 'shape': attempt to access JSON non-unsigned-integer"
    ):
        element_count("x", (1, 2**64))


def test_numbers_that_json_lacks_are_written_as_triton_writes_them():
    tensor = Tensor.from_numpy("y", np.array([math.nan, math.inf, -math.inf, 1], np.float32))
    assert msgspec.json.encode(to_json(tensor)) == b"[NaN,Infinity,-Infinity,1.0]"


def test_strings_that_are_not_utf8_are_written_byte_by_byte():
    tensor = Tensor.from_numpy("y", np.array([b'\xff"\x01', b"\xc3\xa9"], np.object_))
    assert msgspec.json.encode(to_json(tensor)) == b'["\xff\\"\\u0001","\xc3\xa9"]'
