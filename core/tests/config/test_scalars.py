from __future__ import annotations

import pytest

from tritonpy.config.scalars import enum_numbers, integer_in_range
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput

SIZE = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]


def test_the_range_is_inclusive() -> None:
    assert integer_in_range(SIZE, -(2**31)) == -(2**31)
    assert integer_in_range(SIZE, 2**31 - 1) == 2**31 - 1


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31])
def test_an_integer_outside_is_refused_with_the_range(value: int) -> None:
    with pytest.raises(ValueError, match="is out of range, it must be from -2147483648 to 2147483647"):
        integer_in_range(SIZE, value)


def test_the_values_of_an_enum_are_known_by_name() -> None:
    assert enum_numbers(ModelInput.DESCRIPTOR.fields_by_name["format"]) == {
        "FORMAT_NONE": 0,
        "FORMAT_NHWC": 1,
        "FORMAT_NCHW": 2,
    }


def test_enum_numbers_of_another_field_raise() -> None:
    with pytest.raises(AssertionError, match="is not an enum"):
        enum_numbers(SIZE)
