"""Instance groups: the instances of a configuration, and changes by a load while the model serves."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import (
    Concurrent,
    Exchange,
    Http,
    IndexEntry,
    ModelStatistics,
    get,
    load,
    topic,
    unload,
)
from tests.conformance.inference import Inference, text

CPU: dict[str, Any] = {"kind": "KIND_CPU"}
CONFIG: dict[str, Any] = {
    "backend": "python",
    "input": [{"name": "IN", "data_type": "TYPE_STRING", "dims": [1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_STRING", "dims": [-1]}],
}
GROUPS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "none": (1, []),
    "several, with and without names and counts": (
        4,
        [{**CPU, "count": 2}, {**CPU, "count": 0, "name": "second"}, {**CPU, "count": -2}],
    ),
    "of the model": (2, [{"kind": "KIND_MODEL", "count": 2}]),
    "chosen by the server, and a policy that nobody made": (
        2,
        [{"kind": "KIND_AUTO", "count": 2, "host_policy": "nobody"}],
    ),
    "a passive one": (1, [{**CPU, "count": 1}, {**CPU, "count": 1, "passive": True}]),
}
REFUSED: dict[str, list[dict[str, Any]]] = {
    "GPUs of the processor, as the server chose": [{"kind": "KIND_AUTO", "gpus": [0]}],
    "GPUs of the model": [{"kind": "KIND_MODEL", "gpus": [0]}],
    "a profile": [{**CPU, "count": 1, "profile": ["1"]}],
}
NOT_MADE: dict[str, list[dict[str, Any]]] = {
    "a GPU that is not there": [{"kind": "KIND_GPU", "count": 1}],
    "one that does not start": [
        {**CPU, "count": 1, "name": "first"},
        {**CPU, "count": 1, "name": "broken"},
    ],
}
FIRST = [{**CPU, "count": 1, "name": "first"}]
CHANGES: dict[str, list[tuple[int, list[dict[str, Any]]]]] = {
    "another name, and more": [
        (1, [{**CPU, "count": 1, "name": "renamed"}]),
        (3, [{**CPU, "count": 3, "name": "again"}]),
    ],
    "another order": [
        (2, [*FIRST, {**CPU, "count": 1, "name": "second", "host_policy": "p"}]),
        (2, [{**CPU, "count": 1, "name": "second", "host_policy": "p"}, *FIRST]),
        (1, [{**CPU, "count": 1, "name": "second", "host_policy": "p"}]),
    ],
    "nothing, and another kind": [(1, FIRST), (1, [{"kind": "KIND_MODEL", "count": 1}])],
}


def loading(groups: list[dict[str, Any]]) -> Http:
    return load("instances", {**CONFIG, "instance_group": groups})


def meeting(place: str, count: int) -> Concurrent:
    """Return requests that each need a separate instance."""
    inference = Inference("instances", {"IN": text({"meet": [place, count]})}, timeout_s=30).json()
    return Concurrent((inference,) * count)


def made(what: str, count: int, groups: list[dict[str, Any]]) -> Exchange:
    steps = (
        unload("instances"),
        loading(groups),
        meeting(what, count),
        get("/v2/models/instances/config"),
    )
    return Exchange(f"groups: {what}", steps)


def refused(what: str, groups: list[dict[str, Any]]) -> Exchange:
    return Exchange(
        f"refused: {what}", (unload("instances"), loading(groups), IndexEntry("instances"))
    )


def changed(what: str, changes: list[tuple[int, list[dict[str, Any]]]]) -> Exchange:
    """Return the exchange of changes to groups; kept instances continue their execution counts."""
    steps: list[Any] = [
        unload("instances"),
        loading(FIRST),
        meeting(f"{what} before", 1),
        meeting(f"{what} before", 1),
    ]
    for number, (count, groups) in enumerate(changes):
        steps += [
            loading(groups),
            meeting(f"{what} {number}", count),
            get("/v2/models/instances/config"),
            IndexEntry("instances"),
        ]
    return Exchange(f"in place: {what}", tuple(steps))


def not_changed(what: str, groups: list[dict[str, Any]]) -> Exchange:
    """Return the exchange of an invalid change, which keeps the old groups until a change succeeds."""
    steps = (
        unload("instances"), loading(FIRST), loading(groups), meeting(f"not {what}", 1), get("/v2/models/instances/config"),
        IndexEntry("instances"), loading([{**CPU, "count": 2, "name": "first"}]), IndexEntry("instances"),
    )  # fmt: skip
    return Exchange(f"in place, refused: {what}", steps)


TOPIC = topic(
    "instances",
    "instances",
    (
        [made(what, *groups) for what, groups in GROUPS.items()],
        [refused(what, groups) for what, groups in REFUSED.items()],
        [changed(what, changes) for what, changes in CHANGES.items()],
        [not_changed(what, groups) for what, groups in NOT_MADE.items()],
        Exchange(
            "in place: what is counted goes on",
            (unload("instances"), loading(FIRST), meeting("counted", 1), loading([{**CPU, "count": 2}]), meeting("counted by both", 2),
             ModelStatistics("instances", 3)),
        ),
    ),
)  # fmt: skip
