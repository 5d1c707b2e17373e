from __future__ import annotations

import re

import pytest
from google.protobuf import text_format

from tritonpy_protos.model_config_pb2 import ModelInstanceGroup
from tritonpy_rate_limiter.resources import GLOBAL, Resource, demands_of, given_resources, totals
from tritonpy_types.errors import InvalidArgument


def demands(text, device=0):
    group = text_format.Parse(f"rate_limiter {{ {text} }}", ModelInstanceGroup())
    return demands_of(group, device)


R1 = 'resources { name: "R1" count: %d }'
SHARED = 'resources { name: "R1" global: true count: %d }'


def test_a_group_without_a_rate_limiter_needs_nothing():
    assert demands_of(ModelInstanceGroup(), 0) == ()


def test_a_resource_belongs_to_the_device_unless_it_is_global():
    found = demands(
        'resources { name: "R1" count: 4 } resources { name: "R2" count: 2 global: true }', device=3
    )
    assert {(demand.resource, demand.count) for demand in found} == {
        (Resource(3, "r1"), 4),
        (Resource(GLOBAL, "r2"), 2),
    }


def test_the_default_total_is_the_largest_demand_on_a_device():
    everybody = (
        *demands(R1 % 4),
        *demands(R1 % 1),
        *demands(R1 % 5, device=1),
        *demands('resources { name: "R3" count: 10 }'),
    )
    assert totals(everybody, {}) == {
        Resource(0, "r1"): 4,
        Resource(1, "r1"): 5,
        Resource(0, "r3"): 10,
    }


def test_the_server_s_counts_hold_for_every_device_or_for_one():
    given = given_resources({"R1": 10, "R2:0": 5, "R2:1": 8, "R3": 2})
    both = (
        R1 % 1 + 'resources { name: "R2" count: 1 } resources { name: "R3" count: 1 global: true }'
    )
    assert totals((*demands(both), *demands(both, device=1)), given) == {
        Resource(GLOBAL, "r3"): 2,
        Resource(0, "r1"): 10,
        Resource(0, "r2"): 5,
        Resource(1, "r1"): 10,
        Resource(1, "r2"): 8,
    }


def test_of_a_device_s_own_count_and_that_of_every_device_the_larger_holds():
    assert totals(demands(R1 % 1), given_resources({"R1": 3, "R1:0": 2})) == {Resource(0, "r1"): 3}


def test_a_global_resource_ignores_the_device():
    assert totals(demands(SHARED % 2), given_resources({"R1:7": 2})) == {Resource(GLOBAL, "r1"): 2}


def test_names_are_case_insensitive():
    given = given_resources({"r1": 4, "R1": 7})
    assert given == {Resource(-1, "r1"): 4}
    assert totals((*demands(R1 % 2), *demands('resources { name: "r1" count: 3 }')), given) == {
        Resource(0, "r1"): 4
    }


@pytest.mark.parametrize(
    ("text", "given", "limit"),
    [
        (R1 % 4, {"R1": 1}, 1),
        (R1 % 4, {"R1:10": 10}, 0),  # on another device
        (R1 % 4, {"R2": 10}, 0),  # a resource that is not given has a total of 0
        (SHARED % 4, {"R1": 3}, 3),
    ],
)
def test_an_impossible_demand_is_refused_with_tritons_text(text, given, limit):
    with pytest.raises(InvalidArgument) as refused:
        totals(demands(text), given_resources(given))
    assert refused.value.message == (
        f'Resource count for "R1" is limited to {limit} which will prevent scheduling of one or more model instances, '
        "the minimum required count is 4"
    )


def test_one_name_cannot_be_global_and_of_a_device():
    text = 'Resource "R1" is present as both global and device-specific resource in the model configuration.'
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        totals((*demands(R1 % 1), *demands(SHARED % 1)), {})
