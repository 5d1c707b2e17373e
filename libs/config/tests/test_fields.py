from __future__ import annotations

import pytest

from tritonpy_config.fields import (
    enum_numbers,
    fields_of,
    integer_in_range,
    is_map,
    is_set,
    map_parts,
    oneof_conflict,
)
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelDynamicBatching, ModelInput

FIELDS = fields_of(ModelConfig())


def test_fields_come_in_the_order_of_the_proto_file() -> None:
    assert list(FIELDS)[:5] == ["name", "platform", "backend", "runtime", "version_policy"]


def test_a_map_is_distinguished_from_a_list_of_messages() -> None:
    assert is_map(FIELDS["parameters"])
    assert not is_map(FIELDS["input"])
    key, value = map_parts(FIELDS["parameters"])
    assert (key.name, value.name) == ("key", "value")


def test_map_parts_of_another_field_raise() -> None:
    with pytest.raises(AssertionError, match=r"ModelConfig\.name is not a map"):
        map_parts(FIELDS["name"])


def test_members_of_a_oneof_exclude_each_other() -> None:
    config = ModelConfig(dynamic_batching=ModelDynamicBatching())
    assert oneof_conflict(config, FIELDS["dynamic_batching"]) is None
    assert oneof_conflict(config, FIELDS["name"]) is None
    assert oneof_conflict(config, FIELDS["ensemble_scheduling"]) == (
        "cannot be set together with 'dynamic_batching': choose one"
    )


def test_a_default_scalar_and_an_unset_message_are_not_set() -> None:
    config = ModelConfig(max_batch_size=0, name="m", dynamic_batching=ModelDynamicBatching())
    found = {
        name
        for name in ("max_batch_size", "name", "dynamic_batching", "optimization")
        if is_set(config, FIELDS[name])
    }
    assert found == {"name", "dynamic_batching"}


SIZE = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]


def test_the_range_is_inclusive() -> None:
    assert integer_in_range(SIZE, -(2**31)) == -(2**31)
    assert integer_in_range(SIZE, 2**31 - 1) == 2**31 - 1


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31])
def test_an_integer_outside_is_refused_with_the_range(value: int) -> None:
    with pytest.raises(
        ValueError, match="is out of range, it must be from -2147483648 to 2147483647"
    ):
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
