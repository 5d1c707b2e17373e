"""Canaries and shadows from a client's view, over both protocols."""

from __future__ import annotations

import http.client
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import TIMEOUT_S, ServerProcess
from tests.traffic.routing import (
    LIMIT,
    ONE,
    Infer,
    canary,
    failed,
    name_of,
    put,
    route_status,
)


def test_a_bad_version_is_rolled_back_below_its_failure_limit(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "bad")
    put(routed, name, canary=canary(2))
    failures = 0
    for responses in range(1, 601):
        failures += failed(infer_route, name)
        assert failures <= LIMIT * responses
    found = route_status(routed, name)
    assert found["canary"]["state"] == "rolled back"
    assert "responses failed" in found["canary"]["reason"]
    assert 2 <= failures < 10
    assert found["statistics"]["rollbacks"] == 1
    assert f"route {name}: canary work:2 was rolled back" in routed.log
    assert not any(failed(infer_route, name) for _ in range(50))


def test_a_bad_version_is_rolled_back_under_concurrent_clients(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "crowd")
    put(routed, name, canary=canary(2, steps=[{"share": 1, "requests": 1000}]))
    with ThreadPoolExecutor(8) as clients:
        failures = sum(clients.map(lambda _: failed(infer_route, name), range(1000)))
    assert 1 <= failures <= LIMIT * 1000
    assert route_status(routed, name)["canary"]["state"] == "rolled back"


def test_a_slow_version_is_rolled_back_without_a_failure(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "slow")
    put(
        routed,
        name,
        canary=canary(
            3, max_failed_share=1, limits={"latency_over_primary": 1.5, "latency_ms": 45}
        ),
    )
    for _ in range(2000):
        assert not failed(infer_route, name)
        if route_status(routed, name)["canary"]["state"] == "rolled back":
            break
    assert route_status(routed, name)["canary"]["reason"].startswith("latency: ")


def test_a_good_version_is_promoted(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "good")
    put(routed, name, canary=canary(5, limits={"latency_over_primary": None}, max_failed_share=1))
    versions = Counter(infer_route(name)[1] for _ in range(400))
    found = route_status(routed, name)
    assert found["canary"]["state"] == "promoted"
    assert found["route"] == {"targets": [{"model": "work", "version": 5, "weight": 1.0}], "sticky": None, "canary": None, "shadow": None}  # fmt: skip
    assert versions["1"] > 60
    assert {infer_route(name)[1] for _ in range(20)} == {"5"}


@pytest.mark.parametrize(("version", "outcome"), [(5, "same"), (4, "different"), (2, "failed")])
def test_shadow_responses_are_compared_and_never_returned(
    routed: ServerProcess, protocol: Any, infer_route: Infer, version: int, outcome: str
) -> None:
    name = name_of(protocol, f"shadow{version}")
    put(routed, name, shadow={"model": "work", "version": version, "max_open": 1000})
    for number in range(50):
        assert infer_route(name, number) == (number, "1")
    routed.wait(
        lambda: route_status(routed, name)["statistics"]["shadow"]["copies"][outcome] == 50,
        "every copy is compared",
    )
    shadow = route_status(routed, name)["statistics"]["shadow"]
    assert sum(shadow["copies"].values()) == 50
    assert bool(shadow["last_difference"]) == (outcome == "different")
    assert bool(shadow["last_failure"]) == (outcome == "failed")


def test_copies_that_a_busy_shadow_cannot_take_are_dropped(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "busy")
    put(routed, name, shadow={"model": "work", "version": 3, "max_open": 1})
    with ThreadPoolExecutor(4) as clients:
        assert list(clients.map(lambda number: infer_route(name, number), range(40))) == [
            (n, "1") for n in range(40)
        ]
    routed.wait(
        lambda: route_status(routed, name)["statistics"]["shadow"]["open"] == 0,
        "the shadow is done",
    )
    copies = route_status(routed, name)["statistics"]["shadow"]["copies"]
    assert copies["dropped"] > 0
    assert copies["dropped"] + copies["same"] == 40


def test_requests_are_spread_by_weight(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "weights")
    put(routed, name, targets=[{**ONE, "weight": 3}, {"model": "work", "version": 5, "weight": 1}])
    versions = Counter(infer_route(name)[1] for _ in range(200))
    assert abs(versions["5"] - 50) <= 3
    metrics = http.client.HTTPConnection("127.0.0.1", routed.ports["metrics"], timeout=TIMEOUT_S)
    metrics.request("GET", "/metrics")
    metrics_text = metrics.getresponse().read().decode()
    metrics.close()
    assert (
        f'tritonpy_route_requests{{model="work",route="{name}",version="5"}} {versions["5"]}'
        in metrics_text
    )


@pytest.mark.parametrize("sticky", [{"header": "X-User"}, {"parameter": "user"}])
def test_sticky_clients_keep_their_target_and_few_move_with_the_weight(
    routed: ServerProcess, protocol: Any, infer_route: Infer, sticky: dict[str, str]
) -> None:
    name = name_of(protocol, f"sticky-{next(iter(sticky))}")

    def places(weight: float) -> dict[str, str]:
        targets = [{**ONE, "weight": 1}, {"model": "work", "version": 5, "weight": weight}]
        put(routed, name, targets=targets, sticky=sticky)
        return {user: place(user) for user in (f"user-{number}" for number in range(60))}

    def place(user: str) -> str:
        options = (
            {"headers": {"x-user": user}} if "header" in sticky else {"parameters": {"user": user}}
        )
        return str(infer_route(name, **options)[1])

    before = places(1)
    assert set(before.values()) == {"1", "5"}
    assert places(1) == before
    after = places(2)
    assert {before[user] for user in before if before[user] != after[user]} == {"1"}


def test_a_sequence_stays_on_its_target_when_the_route_changes(
    routed: ServerProcess, protocol: Any, infer_route: Infer
) -> None:
    name = name_of(protocol, "sequences")
    both = [{"model": "counts", "version": version} for version in (1, 2)]
    put(routed, name, targets=both)
    places = {
        number: infer_route(name, 1, (1, 1), sequence_id=number, sequence_start=True)[1]
        for number in range(1, 21)
    }
    assert set(places.values()) == {"1", "2"}
    put(routed, name, targets=[both[0]])
    for number, version in places.items():
        assert infer_route(name, 10, (1, 1), sequence_id=number, sequence_end=True) == (11, version)
    assert infer_route(name, 1, (1, 1), sequence_id=1, sequence_start=True, sequence_end=True) == (
        1,
        "1",
    )
