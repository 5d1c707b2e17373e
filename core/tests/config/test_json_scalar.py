from __future__ import annotations

import math

import pytest
from google.protobuf.descriptor import FieldDescriptor

from tritonpy.config.json_scalar import excerpt, scalar_value
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelMetrics

INT32 = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]
BOOL = ModelInput.DESCRIPTOR.fields_by_name["optional"]
ENUM = ModelInput.DESCRIPTOR.fields_by_name["format"]
STRING = ModelInput.DESCRIPTOR.fields_by_name["name"]
DOUBLE = ModelMetrics.MetricControl.HistogramOptions.DESCRIPTOR.fields_by_name["buckets"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (INT32, 4, 4), (INT32, "-4", -4), (INT32, 4.0, 4), (BOOL, True, True), (ENUM, "FORMAT_NHWC", 1), (ENUM, 1, 1),
        (DOUBLE, 1, 1.0), (DOUBLE, "1.5", 1.5), (DOUBLE, "-Infinity", -math.inf), (STRING, "é", "é"),
    ],
)  # fmt: skip
def test_every_form_of_a_value_is_accepted(field: FieldDescriptor, value: object, expected: object) -> None:
    read = scalar_value(field, value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (INT32, 2**31, "2147483648 is out of range, it must be from -2147483648 to 2147483647"),
        (INT32, True, "expected an integer, got true"),
        (INT32, "0x10", 'expected an integer, got "0x10"'),
        (INT32, math.inf, "expected an integer, got Infinity"),
        (BOOL, 1, "expected true or false, got 1"),
        (BOOL, "on", 'expected true or false, got "on"'),
        (DOUBLE, "one", 'expected a number, got "one"'),
        (DOUBLE, False, "expected a number, got false"),
        (DOUBLE, 10**400, f"expected a number, got 1{'0' * 39}…"),
        (ENUM, "NHWC", "unknown value 'NHWC'; did you mean 'FORMAT_NHWC'?"),
        (ENUM, 9, "expected one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW, got 9"),
        (ENUM, None, "expected an integer, got null"),
        (STRING, 5, "expected a string, got 5"),
        (STRING, "\ud800", "the string contains half of a surrogate pair"),
    ],
)
def test_an_invalid_value_is_refused_with_the_expected_type(
    field: FieldDescriptor, value: object, expected: str
) -> None:
    with pytest.raises(ValueError) as caught:
        scalar_value(field, value)
    assert str(caught.value) == expected


def test_long_values_are_truncated() -> None:
    assert excerpt(["abc"] * 100) == '["abc", "abc", "abc", "abc", "abc", "abc…'
