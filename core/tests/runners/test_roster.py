from __future__ import annotations

from collections import Counter

from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.normalize import normalize
from tritonpy.runners.roster import roster_change
from tritonpy_protos.model_config_pb2 import ModelConfig


def config(groups, gpus=(0, 1)):
    return normalize(text_format.Parse(f'name: "m" {groups}', ModelConfig()), gpus)


def names(seats):
    return [seat.context.name for seat in seats]


def changed(*texts):
    """Return the last of the changes that lead from one configuration to the next."""
    change, made = None, 0
    for text in texts:
        change = roster_change(() if change is None else change.seats, config(text), made)
        made += len(change.added)
    return change


def test_the_first_configuration_makes_everything_that_it_asks_for():
    change = changed(
        'instance_group { count: 2 kind: KIND_CPU } instance_group { name: "g" kind: KIND_GPU gpus: [0, 1] }'
    )
    assert names(change.seats) == names(change.added) == ["m_0_0", "m_0_1", "g_0", "g_0"]
    assert [seat.context.index for seat in change.seats] == [0, 1, 2, 3]
    assert [(seat.context.kind, seat.context.device_id) for seat in change.seats[1:]] == [
        ("CPU", 0),
        ("GPU", 0),
        ("GPU", 1),
    ]
    assert [seat.context.host_policy for seat in change.seats[1:]] == ["cpu", "gpu_0", "gpu_1"]


def test_what_an_instance_is_told_of_its_group():
    (seat,) = changed(
        'instance_group { kind: KIND_MODEL profile: "1" passive: true host_policy: "p" '
        "secondary_devices { kind: KIND_NVDLA device_id: 3 } }"
    ).seats
    context = seat.context
    assert (context.kind, context.profiles, context.passive) == ("MODEL", ("1",), True)
    assert (context.host_policy, context.secondary_devices) == ("p", (("KIND_NVDLA", 3),))


def test_fewer_keeps_the_first_and_more_makes_those_that_are_missing():
    cpu = "instance_group {{ count: {} kind: KIND_CPU }}".format
    assert names(changed(cpu(3), cpu(1)).seats) == ["m_0_0"]
    assert names(changed(cpu(3), cpu(1)).removed) == ["m_0_1", "m_0_2"]
    assert names(changed(cpu(3), cpu(1), cpu(3)).seats) == ["m_0_0", "m_0_1", "m_0_2"]


def test_an_index_is_never_given_twice():
    cpu = "instance_group {{ count: {} kind: KIND_CPU }}".format
    assert [seat.context.index for seat in changed(cpu(3), cpu(1), cpu(3)).seats] == [0, 3, 4]


def test_names_and_order_of_groups_change_nothing():
    change = changed(
        'instance_group { name: "a" count: 2 kind: KIND_CPU } instance_group { name: "b" count: 1 kind: KIND_MODEL }',
        'instance_group { name: "x" count: 1 kind: KIND_MODEL } instance_group { name: "y" count: 1 kind: KIND_CPU } '
        'instance_group { name: "z" count: 1 kind: KIND_CPU }',
    )
    assert (change.added, change.removed) == ((), ())
    assert sorted(names(change.seats)) == ["a_0", "a_1", "b_0"]


def test_whatever_else_differs_makes_another_instance():
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
def test_there_is_what_the_last_configuration_asks_for_and_nothing_is_made_or_ended_needlessly(texts):
    change, before = changed(*texts), changed(*texts[:-1])
    asked = changed(texts[-1]).seats
    signatures = Counter(seat.signature() for seat in change.seats)
    assert signatures == Counter(seat.signature() for seat in asked)
    present = () if before is None else before.seats
    assert Counter(seat.context.index for seat in present) + Counter(
        seat.context.index for seat in change.added
    ) == Counter(seat.context.index for seat in (*change.seats, *change.removed))
    assert not {seat.signature() for seat in change.added} & {seat.signature() for seat in change.removed}
