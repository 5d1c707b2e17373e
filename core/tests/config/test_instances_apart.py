from __future__ import annotations

from google.protobuf import text_format

from tritonpy.config.instances_apart import apart_from_instances, with_instances_of
from tritonpy_protos.model_config_pb2 import ModelConfig


def config_of(text):
    return text_format.Parse(text, ModelConfig())


OLD = config_of('name: "m" instance_group { count: 2 } version_policy { all {} }')


def test_what_is_left_has_neither_instances_nor_a_choice_of_versions():
    assert apart_from_instances(OLD) == config_of('name: "m"')


def test_the_other_configuration_gives_those_two_and_nothing_else():
    other = config_of('name: "other" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }')
    expected = 'name: "m" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }'
    assert with_instances_of(OLD, other) == config_of(expected)


def test_where_the_other_says_nothing_nothing_is_said():
    assert with_instances_of(OLD, config_of("")) == config_of('name: "m"')


def test_neither_configuration_is_changed():
    before = OLD.SerializeToString(deterministic=True)
    with_instances_of(OLD, config_of("instance_group { count: 3 }"))
    apart_from_instances(OLD)
    assert OLD.SerializeToString(deterministic=True) == before
