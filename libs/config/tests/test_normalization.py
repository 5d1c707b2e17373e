from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.normalization import (
    InstanceSpec,
    instance_specs,
    normalize,
    with_instances_of,
    without_instances,
)
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup


def parse(text=""):
    return text_format.Parse(text, ModelConfig(name="m"))


def group_of(text, **options):
    (group,) = normalize(parse(f"instance_group {{ {text} }}"), **options).instance_group
    return ModelInstanceGroup.Kind.Name(group.kind), group.count, list(group.gpus)


def test_the_newest_version_serves_by_default():
    assert normalize(parse()).version_policy.latest.num_versions == 1
    assert normalize(parse("version_policy { all {} }")).version_policy.HasField("all")


def test_preferred_sizes_default_to_the_largest_batch():
    normal = normalize(parse("max_batch_size: 8 dynamic_batching {}"))
    assert normal.dynamic_batching.preferred_batch_size == [8]
    normal = normalize(parse("max_batch_size: 8 sequence_batching { oldest {} }"))
    assert normal.sequence_batching.oldest.preferred_batch_size == [8]
    normal = normalize(parse("max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 }"))
    assert normal.dynamic_batching.preferred_batch_size == [4]


def test_a_model_without_batching_has_no_preferred_sizes():
    assert not normalize(parse("dynamic_batching {}")).dynamic_batching.preferred_batch_size


def test_sequences_idle_one_second_by_default():
    assert (
        normalize(parse("sequence_batching {}")).sequence_batching.max_sequence_idle_microseconds
        == 1_000_000
    )
    normal = normalize(parse("sequence_batching { max_sequence_idle_microseconds: 5 }"))
    assert normal.sequence_batching.max_sequence_idle_microseconds == 5


def test_the_direct_strategy_is_not_added():
    assert (
        normalize(parse("max_batch_size: 2 sequence_batching {}")).sequence_batching.WhichOneof(
            "strategy_choice"
        )
        is None
    )


def test_pinned_memory_is_enabled_by_default():
    normal = normalize(parse("optimization { input_pinned_memory { enable: false } }"))
    assert not normal.optimization.input_pinned_memory.enable
    assert normal.optimization.output_pinned_memory.enable


def test_an_ensemble_has_neither_groups_nor_optimization():
    normal = normalize(parse('platform: "ensemble" ensemble_scheduling {}'))
    assert not normal.instance_group
    assert not normal.HasField("optimization")


def test_groups_are_named_after_the_model():
    assert [group.name for group in normalize(parse()).instance_group] == ["m"]
    normal = normalize(parse('instance_group [{}, { name: "mine" }, {}]'))
    assert [group.name for group in normal.instance_group] == ["m_0", "mine", "m_2"]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("", {}, ("KIND_CPU", 1, [])),
        ("", {"default_instance_count": 2}, ("KIND_CPU", 2, [])),
        ("count: 3", {"default_instance_count": 2}, ("KIND_CPU", 3, [])),
        ("kind: KIND_MODEL", {"default_instance_count": 2}, ("KIND_MODEL", 1, [])),
        ("", {"gpus": [0, 1]}, ("KIND_CPU", 1, [])),
        (
            "",
            {"gpus": [0, 1], "uses_gpu": True, "default_instance_count": 2},
            ("KIND_GPU", 1, [0, 1]),
        ),
        ("", {"uses_gpu": True}, ("KIND_CPU", 1, [])),
        ("gpus: 1", {"gpus": [0, 1]}, ("KIND_GPU", 1, [1])),
        ("gpus: [0, 7]", {"gpus": [0, 1], "uses_gpu": True}, ("KIND_CPU", 1, [0, 7])),
        ("kind: KIND_GPU", {"gpus": [0, 1]}, ("KIND_GPU", 1, [0, 1])),
        ("kind: KIND_GPU", {}, ("KIND_GPU", 1, [])),
        ("kind: KIND_GPU gpus: 1", {"gpus": [0, 1]}, ("KIND_GPU", 1, [1])),
        ("kind: KIND_CPU", {"gpus": [0], "uses_gpu": True}, ("KIND_CPU", 1, [])),
    ],
)
def test_a_group_gets_kind_count_and_devices(text, options, expected):
    assert group_of(text, **options) == expected


PREFERRED = [
    ModelInstanceGroup(kind="KIND_GPU", count=3, gpus=[1, 5]),
    ModelInstanceGroup(kind="KIND_CPU", count=2),
]


@pytest.mark.parametrize(
    ("text", "gpus", "expected"),
    [
        ("", [], [("m", "KIND_CPU", 2, [])]),
        ("", [0, 1], [("m", "KIND_GPU", 3, [1])]),
        ("", [0], [("m", "KIND_GPU", 3, [0])]),  # none of the preferred GPUs
        ("instance_group {}", [], [("m_0", "KIND_CPU", 2, [])]),
        ("instance_group { count: 1 }", [], [("m_0", "KIND_CPU", 1, [])]),
        ("instance_group { kind: KIND_MODEL }", [], [("m_0", "KIND_MODEL", 1, [])]),
        ("instance_group { kind: KIND_GPU }", [0, 1], [("m_0", "KIND_GPU", 3, [1])]),
        ("instance_group { kind: KIND_GPU gpus: 0 }", [0, 1], [("m_0", "KIND_GPU", 3, [0])]),
    ],
)
def test_preferred_groups_set_what_a_configuration_leaves_open(text, gpus, expected):
    normal = normalize(parse(text), gpus, preferred=PREFERRED)
    kind = ModelInstanceGroup.Kind.Name
    assert [
        (group.name, kind(group.kind), group.count, list(group.gpus))
        for group in normal.instance_group
    ] == expected
    assert normalize(normal, gpus) == normal


def test_a_preferred_group_of_any_kind_keeps_its_gpus():
    preferred = [ModelInstanceGroup(count=2, gpus=[1])]
    (group,) = normalize(parse(), [0, 1], preferred=preferred).instance_group
    assert (group.kind, group.count, list(group.gpus)) == (ModelInstanceGroup.KIND_GPU, 2, [1])


KINDS = st.sampled_from(["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"])


@given(
    st.lists(
        st.tuples(KINDS, st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2)), max_size=3
    ),
    st.lists(st.integers(0, 3), unique=True, max_size=2),
    st.integers(0, 4),
    st.booleans(),
)
def test_normalizing_twice_changes_nothing_and_keeps_the_argument(groups, gpus, size, uses_gpu):
    config = parse(f"max_batch_size: {size} dynamic_batching {{}}")
    for kind, count, devices in groups:
        config.instance_group.add(kind=kind, count=count, gpus=devices)
    before = config.SerializeToString(deterministic=True)
    once = normalize(config, gpus, 2, uses_gpu)
    assert normalize(once, gpus, 2, uses_gpu) == once
    assert config.SerializeToString(deterministic=True) == before


def test_instances_are_numbered_within_their_group():
    normal = normalize(
        parse(
            'instance_group [{ count: 2 }, { kind: KIND_GPU gpus: [1, 3] profile: "0" passive: true }]'
        )
    )
    assert instance_specs(normal) == [
        InstanceSpec("m_0_0", 0, "CPU", 0),
        InstanceSpec("m_0_1", 0, "CPU", 0),
        InstanceSpec("m_1_0", 1, "GPU", 1, ("0",), passive=True),
        InstanceSpec("m_1_0", 1, "GPU", 3, ("0",), passive=True),
    ]


def test_an_instance_of_the_model_itself_has_no_device():
    assert instance_specs(normalize(parse("instance_group { kind: KIND_MODEL }"))) == [
        InstanceSpec("m_0_0", 0, "MODEL", 0)
    ]


def config_of(text):
    return text_format.Parse(text, ModelConfig())


OLD = config_of('name: "m" instance_group { count: 2 } version_policy { all {} }')


def test_instances_and_version_policy_are_removed():
    assert without_instances(OLD) == config_of('name: "m"')


def test_only_those_two_are_taken_from_the_other_configuration():
    other = config_of(
        'name: "other" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }'
    )
    expected = 'name: "m" instance_group { count: 3 } version_policy { latest { num_versions: 2 } }'
    assert with_instances_of(OLD, other) == config_of(expected)


def test_fields_missing_in_the_other_configuration_are_cleared():
    assert with_instances_of(OLD, config_of("")) == config_of('name: "m"')


def test_neither_configuration_is_changed():
    before = OLD.SerializeToString(deterministic=True)
    with_instances_of(OLD, config_of("instance_group { count: 3 }"))
    without_instances(OLD)
    assert OLD.SerializeToString(deterministic=True) == before
