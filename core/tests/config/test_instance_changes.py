from __future__ import annotations

from google.protobuf import text_format

from tritonpy.config.instance_changes import with_instances_of, without_instances
from tritonpy_protos.model_config_pb2 import ModelConfig


def config_of(text):
    return text_format.Parse(text, ModelConfig())


OLD = config_of('name: "m" instance_group { count: 2 } version_policy { all {} }')


def test_instances_and_version_policy_are_removed():
    assert without_instances(OLD) == config_of('name: "m"')


def test_only_those_two_are_taken_from_the_other_configuration():
    other = config_of('name: "other" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }')
    expected = 'name: "m" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }'
    assert with_instances_of(OLD, other) == config_of(expected)


def test_fields_missing_in_the_other_configuration_are_cleared():
    assert with_instances_of(OLD, config_of("")) == config_of('name: "m"')


def test_neither_configuration_is_changed():
    before = OLD.SerializeToString(deterministic=True)
    with_instances_of(OLD, config_of("instance_group { count: 3 }"))
    without_instances(OLD)
    assert OLD.SerializeToString(deterministic=True) == before
