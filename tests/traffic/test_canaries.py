"""Canaries and shadows as clients see them, over both protocols."""

from __future__ import annotations

import http.client
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import TIMEOUT_S, Served
from tests.traffic.routing import (
    LIMIT,
    ONE,
    Ask,
    canary,
    failed,
    name_of,
    put,
    told,
)


def test_a_bad_version_fails_less_than_its_limit_at_every_moment_and_is_rolled_back(
    routed: Served, protocol: Any, asking: Ask
) -> None:
    name = name_of(protocol, "bad")
    put(routed, name, canary=canary(2))
    failures = 0
    for answers in range(1, 601):
        failures += failed(asking, name)
        assert failures <= LIMIT * answers
    found = told(routed, name)
    assert found["canary"]["state"] == "rolled back"
    assert "answers failed" in found["canary"]["reason"]
    assert 2 <= failures < 10
    assert found["statistics"]["rollbacks"] == 1
    assert f"route {name}: canary work:2 is rolled back" in routed.log
    assert not any(failed(asking, name) for _ in range(50))


def test_it_is_so_for_clients_at_once_too(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "crowd")
    put(routed, name, canary=canary(2, steps=[{"share": 1, "requests": 1000}]))
    with ThreadPoolExecutor(8) as crowd:
        failures = sum(crowd.map(lambda _: failed(asking, name), range(1000)))
    assert 1 <= failures <= LIMIT * 1000
    assert told(routed, name)["canary"]["state"] == "rolled back"


def test_a_slow_version_is_rolled_back_without_a_failure(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "slow")
    put(routed, name, canary=canary(3, max_failed_share=1, limits={"latency_over_primary": 1.5, "latency_ms": 45}))
    for _ in range(2000):
        assert not failed(asking, name)
        if told(routed, name)["canary"]["state"] == "rolled back":
            break
    assert told(routed, name)["canary"]["reason"].startswith("latency: ")


def test_a_good_version_rises_and_is_promoted(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "good")
    put(routed, name, canary=canary(5, limits={"latency_over_primary": None}, max_failed_share=1))
    versions = Counter(asking(name)[1] for _ in range(400))
    found = told(routed, name)
    assert found["canary"]["state"] == "promoted"
    assert found["route"] == {"targets": [{"model": "work", "version": 5, "weight": 1.0}], "sticky": None, "canary": None, "shadow": None}  # fmt: skip
    assert versions["1"] > 60
    assert {asking(name)[1] for _ in range(20)} == {"5"}


@pytest.mark.parametrize(("version", "outcome"), [(5, "same"), (4, "different"), (2, "failed")])
def test_a_shadow_s_answers_are_compared_and_never_returned(
    routed: Served, protocol: Any, asking: Ask, version: int, outcome: str
) -> None:
    name = name_of(protocol, f"shadow{version}")
    put(routed, name, shadow={"model": "work", "version": version, "max_open": 1000})
    for number in range(50):
        assert asking(name, number) == (number, "1")
    routed.wait(lambda: told(routed, name)["statistics"]["shadow"]["copies"][outcome] == 50, "every copy is compared")
    shadow = told(routed, name)["statistics"]["shadow"]
    assert sum(shadow["copies"].values()) == 50
    assert bool(shadow["last_difference"]) == (outcome == "different")
    assert bool(shadow["last_failure"]) == (outcome == "failed")


def test_copies_that_a_busy_shadow_cannot_take_are_dropped(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "busy")
    put(routed, name, shadow={"model": "work", "version": 3, "max_open": 1})
    with ThreadPoolExecutor(4) as crowd:
        assert list(crowd.map(lambda number: asking(name, number), range(40))) == [(n, "1") for n in range(40)]
    routed.wait(lambda: told(routed, name)["statistics"]["shadow"]["open"] == 0, "the shadow is done")
    copies = told(routed, name)["statistics"]["shadow"]["copies"]
    assert copies["dropped"] > 0
    assert copies["dropped"] + copies["same"] == 40


def test_requests_are_spread_by_weight(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "weights")
    put(routed, name, targets=[{**ONE, "weight": 3}, {"model": "work", "version": 5, "weight": 1}])
    versions = Counter(asking(name)[1] for _ in range(200))
    assert abs(versions["5"] - 50) <= 3
    metrics = http.client.HTTPConnection("127.0.0.1", routed.ports["metrics"], timeout=TIMEOUT_S)
    metrics.request("GET", "/metrics")
    told_of = metrics.getresponse().read().decode()
    metrics.close()
    assert f'tritonpy_route_requests{{model="work",route="{name}",version="5"}} {versions["5"]}' in told_of


@pytest.mark.parametrize("sticky", [{"header": "X-User"}, {"parameter": "user"}])
def test_clients_stay_where_they_are_and_few_move_with_a_weight(
    routed: Served, protocol: Any, asking: Ask, sticky: dict[str, str]
) -> None:
    name = name_of(protocol, f"sticky-{next(iter(sticky))}")

    def places(weight: float) -> dict[str, str]:
        targets = [{**ONE, "weight": 1}, {"model": "work", "version": 5, "weight": weight}]
        put(routed, name, targets=targets, sticky=sticky)
        return {user: place(user) for user in (f"user-{number}" for number in range(60))}

    def place(user: str) -> str:
        options = {"headers": {"x-user": user}} if "header" in sticky else {"parameters": {"user": user}}
        return str(asking(name, **options)[1])

    before = places(1)
    assert set(before.values()) == {"1", "5"}
    assert places(1) == before
    after = places(2)
    assert {before[user] for user in before if before[user] != after[user]} == {"1"}


def test_a_sequence_stays_on_its_target_while_the_route_turns_away(routed: Served, protocol: Any, asking: Ask) -> None:
    name = name_of(protocol, "sequences")
    both = [{"model": "counts", "version": version} for version in (1, 2)]
    put(routed, name, targets=both)
    places = {number: asking(name, 1, (1, 1), sequence_id=number, sequence_start=True)[1] for number in range(1, 21)}
    assert set(places.values()) == {"1", "2"}
    put(routed, name, targets=[both[0]])
    for number, version in places.items():
        assert asking(name, 10, (1, 1), sequence_id=number, sequence_end=True) == (11, version)
    assert asking(name, 1, (1, 1), sequence_id=1, sequence_start=True, sequence_end=True) == (1, "1")
