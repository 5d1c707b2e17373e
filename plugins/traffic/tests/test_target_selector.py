from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tritonpy import CallbackSink, InferRequest, SequenceInfo
from tritonpy_traffic.spec import RouteSpec, Sticky, WeightedTarget
from tritonpy_traffic.target_selector import TargetSelector

NOWHERE = CallbackSink(lambda _request, _response: None)
TARGETS = [WeightedTarget("a", 1, 3), WeightedTarget("b", None, 1), WeightedTarget("c", None, 0)]


def test_without_keys_the_targets_alternate_by_weight() -> None:
    selector = TargetSelector("route", RouteSpec(TARGETS))
    found = Counter(selector.targets("")[0].label for _ in range(400))
    assert abs(found["a:1"] - 300) <= 3
    assert found.keys() == {"a:1", "b"}


def test_all_targets_with_weight_are_candidates() -> None:
    selector = TargetSelector("route", RouteSpec(TARGETS))
    for key in ("", "key", "other"):
        assert {target.label for target in selector.targets(key)} == {"a:1", "b"}


def test_a_key_is_a_header_or_a_parameter_or_the_sequence() -> None:
    request = InferRequest(
        "route",
        {},
        NOWHERE,
        parameters={"user": 7},
        headers={"x-user": "anne"},
        sequence=SequenceInfo(5),
    )
    bare = InferRequest("route", {}, NOWHERE)
    for sticky, key in (
        (Sticky("X-User"), "anne"),
        (Sticky(parameter="user"), "7"),
        (Sticky(parameter="no"), "5"),
        (None, "5"),
    ):
        selector = TargetSelector("route", RouteSpec(TARGETS, sticky))
        assert selector.key(request) == key
        assert selector.key(bare) == ""


def test_keys_only_join_a_growing_canary() -> None:
    selector, keys = (
        TargetSelector("route", RouteSpec(TARGETS)),
        [str(number) for number in range(1000)],
    )
    shares = [
        {key for key in keys if selector.is_canary_request(key, share)}
        for share in (0.0, 0.01, 0.1, 0.5, 1.0)
    ]
    for smaller, larger in pairwise(shares):
        assert smaller < larger
    assert abs(len(shares[3]) - 500) < 60


def test_without_keys_a_canary_gets_its_share() -> None:
    selector = TargetSelector("route", RouteSpec(TARGETS))
    assert abs(sum(selector.is_canary_request("", 0.05) for _ in range(1000)) - 50) <= 3
