from __future__ import annotations

import math

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.text_scalar import scalar_value
from tritonpy.config.text_tree import Scalar, parse
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelDynamicBatching, ModelInput, ModelMetrics

INT32 = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]
UINT64 = ModelDynamicBatching.DESCRIPTOR.fields_by_name["priority_levels"]
BOOL = ModelInput.DESCRIPTOR.fields_by_name["optional"]
ENUM = ModelInput.DESCRIPTOR.fields_by_name["format"]
STRING = ModelInput.DESCRIPTOR.fields_by_name["name"]
DOUBLE = ModelMetrics.MetricControl.HistogramOptions.DESCRIPTOR.fields_by_name["buckets"]


def value(field: FieldDescriptor, text: str):
    (read,), problems = parse(f"x: {text}")
    assert not problems
    assert isinstance(read.values[0], Scalar)
    return scalar_value(field, read.values[0])


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (INT32, "-12", -12), (INT32, "0x1f", 31), (INT32, "-0x1F", -31), (INT32, "017", 15), (INT32, "0", 0),
        (UINT64, "18446744073709551615", 2**64 - 1),
        (BOOL, "true", True), (BOOL, "f", False), (BOOL, "1", True),
        (ENUM, "FORMAT_NCHW", 2), (ENUM, "1", 1),
        (DOUBLE, "1.5f", 1.5), (DOUBLE, ".5", 0.5), (DOUBLE, "2", 2.0), (DOUBLE, "1e-7", 1e-7),
        (DOUBLE, "inf", math.inf), (DOUBLE, "-Infinity", -math.inf), (DOUBLE, "inff", math.inf),
        (STRING, r'"\a\b\f\n\r\t\v\\\'\"\?"', "\a\b\f\n\r\t\v\\'\"?"),
        (STRING, r"'\x41\101\u00e9\U0001F600'", "AAé😀"), (STRING, r'"\xc3" "\xa9"', "é"),
    ],
)  # fmt: skip
def test_every_notation_of_a_value_is_accepted(field: FieldDescriptor, text: str, expected: object) -> None:
    assert value(field, text) == expected


@pytest.mark.parametrize("text", ["nan", "-NaN", "nanf"])
def test_nan_is_accepted(text: str) -> None:
    assert math.isnan(value(DOUBLE, text))


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (INT32, "2147483648", "2147483648 is out of range, it must be from -2147483648 to 2147483647"),
        (UINT64, "-1", "-1 is out of range, it must be from 0 to 18446744073709551615"),
        (INT32, "1.0", "expected an integer, got '1.0'"),
        (INT32, "089", "expected an integer, got '089'"),
        (INT32, "1_0", "expected an integer, got '1_0'"),
        (INT32, '"4"', 'expected an integer, got "4"'),
        (INT32, "9" * 5000, f"expected an integer, got '{'9' * 40}…'"),
        (BOOL, "yes", "expected true or false, got 'yes'"),
        (BOOL, "2", "expected true or false, got '2'"),
        (DOUBLE, "one", "expected a number, got 'one'"),
        (DOUBLE, "00.5", "expected a number, got '00.5'"),
        (DOUBLE, '"1"', 'expected a number, got "1"'),
        (ENUM, "FORMAT_NCWH", "unknown value 'FORMAT_NCWH'; did you mean 'FORMAT_NCHW'?"),
        (ENUM, "9", "there is no value with number 9; valid here: FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW"),
        (
            ENUM,
            '"FORMAT_NCHW"',
            'expected one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW without quotes, got "FORMAT_NCHW"',
        ),
        (STRING, "abc", 'expected a string in quotes, got abc: write "abc"'),
        (STRING, r'"\q"', r"\q is not an escape sequence; write \\ for a backslash"),
        (STRING, '"\\é"', r"\é is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\ud800"', r"\ud800 is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\400"', r"\400 is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\xff"', r'the string is not UTF-8 after its escapes are decoded: "\xff"'),
    ],
)
def test_an_invalid_value_is_refused_with_the_expected_type(field: FieldDescriptor, text: str, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        value(field, text)
    assert str(caught.value) == expected


@given(st.floats(allow_nan=False))
def test_numbers_are_parsed_exactly(number: float) -> None:
    assert value(DOUBLE, repr(number)) == number
