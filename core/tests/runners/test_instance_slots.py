from __future__ import annotations

from collections import Counter

from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.runners.instance_slots import plan_instance_change
from tritonpy_config.normalization import normalize
from tritonpy_protos.model_config_pb2 import ModelConfig


def config(groups, gpus=(0, 1)):
    return normalize(text_format.Parse(f'name: "m" {groups}', ModelConfig()), gpus)


def names(slots):
    return [slot.context.name for slot in slots]


def changed(*texts):
    """Return the last of the changes between successive configurations."""
    change, made = None, 0
    for text in texts:
        change = plan_instance_change(() if change is None else change.slots, config(text), made)
        made += len(change.added)
    return change


def test_the_first_configuration_adds_all_its_instances():
    change = changed(
        'instance_group { count: 2 kind: KIND_CPU } instance_group { name: "g" kind: KIND_GPU gpus: [0, 1] }'
    )
    assert names(change.slots) == names(change.added) == ["m_0_0", "m_0_1", "g_0", "g_0"]
    assert [slot.context.index for slot in change.slots] == [0, 1, 2, 3]
    assert [(slot.context.kind, slot.context.device_id) for slot in change.slots[1:]] == [
        ("CPU", 0),
        ("GPU", 0),
        ("GPU", 1),
    ]
    assert [slot.context.host_policy for slot in change.slots[1:]] == ["cpu", "gpu_0", "gpu_1"]


def test_an_instance_gets_the_attributes_of_its_group():
    (slot,) = changed(
        'instance_group { kind: KIND_MODEL profile: "1" passive: true host_policy: "p" '
        "secondary_devices { kind: KIND_NVDLA device_id: 3 } }"
    ).slots
    context = slot.context
    assert (context.kind, context.profiles, context.passive) == ("MODEL", ("1",), True)
    assert (context.host_policy, context.secondary_devices) == ("p", (("KIND_NVDLA", 3),))


def test_a_lower_count_keeps_the_first_and_a_higher_one_adds_the_missing():
    cpu = "instance_group {{ count: {} kind: KIND_CPU }}".format
    assert names(changed(cpu(3), cpu(1)).slots) == ["m_0_0"]
    assert names(changed(cpu(3), cpu(1)).removed) == ["m_0_1", "m_0_2"]
    assert names(changed(cpu(3), cpu(1), cpu(3)).slots) == ["m_0_0", "m_0_1", "m_0_2"]


def test_an_index_is_never_reused():
    cpu = "instance_group {{ count: {} kind: KIND_CPU }}".format
    assert [slot.context.index for slot in changed(cpu(3), cpu(1), cpu(3)).slots] == [0, 3, 4]


def test_names_and_order_of_groups_change_nothing():
    change = changed(
        'instance_group { name: "a" count: 2 kind: KIND_CPU } instance_group { name: "b" count: 1 kind: KIND_MODEL }',
        'instance_group { name: "x" count: 1 kind: KIND_MODEL } instance_group { name: "y" count: 1 kind: KIND_CPU } '
        'instance_group { name: "z" count: 1 kind: KIND_CPU }',
    )
    assert (change.added, change.removed) == ((), ())
    assert sorted(names(change.slots)) == ["a_0", "a_1", "b_0"]


def test_any_other_difference_replaces_the_instance():
    first = "instance_group { count: 1 kind: KIND_CPU }"
    for second in (
        "instance_group { count: 1 kind: KIND_MODEL }",
        'instance_group { count: 1 kind: KIND_CPU host_policy: "p" }',
        "instance_group { count: 1 kind: KIND_CPU passive: true }",
        'instance_group { count: 1 kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }',
    ):
        change = changed(first, second)
        assert (len(change.added), len(change.removed)) == (1, 1)


group = st.builds(
    "instance_group {{ count: {} kind: {} passive: {} }}".format,
    st.integers(1, 3),
    st.sampled_from(["KIND_CPU", "KIND_MODEL", "KIND_GPU"]),
    st.sampled_from(["true", "false"]),
)
configurations = st.lists(group, min_size=1, max_size=4).map(" ".join)


@given(st.lists(configurations, min_size=1, max_size=4))
def test_instances_match_the_last_configuration_with_minimal_changes(texts):
    change, before = changed(*texts), changed(*texts[:-1])
    requested = changed(texts[-1]).slots
    signatures = Counter(slot.signature() for slot in change.slots)
    assert signatures == Counter(slot.signature() for slot in requested)
    present = () if before is None else before.slots
    assert Counter(slot.context.index for slot in present) + Counter(
        slot.context.index for slot in change.added
    ) == Counter(slot.context.index for slot in (*change.slots, *change.removed))
    assert not {slot.signature() for slot in change.added} & {
        slot.signature() for slot in change.removed
    }
