from __future__ import annotations

import pytest

from tritonpy.config.fields import fields_of, is_map, is_set, map_parts, oneof_conflict
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelDynamicBatching

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
        name for name in ("max_batch_size", "name", "dynamic_batching", "optimization") if is_set(config, FIELDS[name])
    }
    assert found == {"name", "dynamic_batching"}
