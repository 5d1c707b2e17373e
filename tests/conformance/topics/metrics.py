"""Metrics that models create."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Metrics, topic
from tests.conformance.inference import Inference, given

FAMILY = "own_{}"
KINDS = ("COUNTER", "GAUGE", "HISTOGRAM")
PLANS: dict[str, list[Any]] = {
    "counter": [
        ["metric", "m", "f", {"a": "1"}],
        ["value", "m"],
        ["increment", "m", 2],
        ["increment", "m", 0.5],
        ["value", "m"],
    ],
    "counter without labels": [["metric", "m", "f"], ["increment", "m", 1], ["value", "m"]],
    "counter backwards": [["metric", "m", "f", {"a": "1"}], ["increment", "m", -1], ["value", "m"]],
    "counter by zero": [["metric", "m", "f", {"a": "1"}], ["increment", "m", 0], ["value", "m"]],
    "counter set": [["metric", "m", "f", {"a": "1"}], ["set", "m", 5], ["value", "m"]],
    "counter observed": [["metric", "m", "f", {"a": "1"}], ["observe", "m", 5], ["value", "m"]],
    "gauge": [
        ["metric", "m", "f", {"a": "1"}],
        ["set", "m", 5],
        ["increment", "m", -7.5],
        ["value", "m"],
    ],
    "gauge observed": [["metric", "m", "f", {"a": "1"}], ["observe", "m", 5]],
    "histogram": [
        ["metric", "m", "f", {"a": "1"}, [0.1, 1, 10]],
        ["observe", "m", 0.05],
        ["observe", "m", 1],
        ["observe", "m", 100],
    ],
    "histogram without buckets": [["metric", "m", "f", {"a": "1"}]],
    "histogram with unsorted buckets": [
        ["metric", "m", "f", {"a": "1"}, [10, 1]],
        ["observe", "m", 5],
    ],
    "histogram with no buckets": [["metric", "m", "f", {"a": "1"}, []], ["observe", "m", 5]],
    "histogram value": [["metric", "m", "f", {"a": "1"}, [1]], ["value", "m"]],
    "histogram increment": [["metric", "m", "f", {"a": "1"}, [1]], ["increment", "m", 1]],
    "histogram set": [["metric", "m", "f", {"a": "1"}, [1]], ["set", "m", 1]],
    "counter with buckets": [["metric", "m", "f", {"a": "1"}, [1]], ["increment", "m", 1]],
    "gauge with buckets": [["metric", "m", "f", {"a": "1"}, [1]], ["set", "m", 1]],
    "gauge two metrics": [
        ["metric", "m", "f", {"a": "1"}],
        ["metric", "n", "f", {"a": "2", "b": "x"}],
        ["set", "m", 1],
        ["set", "n", 2],
    ],
    "gauge same labels": [
        ["metric", "m", "f", {"a": "1"}],
        ["metric", "n", "f", {"a": "1"}],
        ["set", "m", 1],
        ["value", "n"],
    ],
    "gauge strange labels": [["metric", "m", "f", {"a": 'quo"te\\ \n ö'}], ["set", "m", 1]],
    "gauge label of number": [["metric", "m", "f", {"a": 1}]],
    "gauge label name": [["metric", "m", "f", {"not good": "1"}]],
    "gauge labels of a list": [["metric", "m", "f", ["a"]]],
    "gauge set to text": [["metric", "m", "f", {"a": "1"}], ["set", "m", "five"]],
    "gauge extremes": [
        ["metric", "m", "f", {"a": "1"}],
        ["set", "m", 1e300],
        ["value", "m"],
        ["set", "m", -0.0],
        ["value", "m"],
    ],
    "gauge dropped": [["metric", "m", "f", {"a": "1"}], ["set", "m", 1], ["drop", "m"]],
    "gauge family dropped": [["metric", "m", "f", {"a": "1"}], ["drop", "m"], ["drop_family", "f"]],
    "gauge family dropped first": [
        ["metric", "m", "f", {"a": "1"}],
        ["drop_family", "f"],
        ["set", "m", 1],
        ["value", "m"],
        ["drop", "m"],
    ],
}
FAMILIES: dict[str, list[Any]] = {
    "same name and kind": [
        ["family", "f", "own_same", "GAUGE"],
        ["family", "g", "own_same", "GAUGE"],
        ["metric", "m", "g"],
        ["set", "m", 3],
    ],
    "same name, other kind": [
        ["family", "f", "own_kind", "GAUGE"],
        ["family", "g", "own_kind", "COUNTER"],
    ],
    "same name, other description": [
        ["family", "f", "own_told", "GAUGE", "one"],
        ["family", "g", "own_told", "GAUGE", "two"],
    ],
    "bad name": [["family", "f", "not good", "GAUGE"]],
    "no name": [["family", "f", "", "GAUGE"]],
    "name of the server's own": [["family", "f", "nv_inference_count", "COUNTER"]],
    "no description": [
        ["family", "f", "own_silent", "GAUGE", ""],
        ["metric", "m", "f"],
        ["set", "m", 1],
    ],
    "strange description": [
        ["family", "f", "own_strange", "GAUGE", 'a \\ and "quotes" ö'],
        ["metric", "m", "f"],
        ["set", "m", 1],
    ],
    "kind of number": [["family", "f", "own_number", 0]],
    "name of number": [["family", "f", 7, "GAUGE"]],
    "empty family": [["family", "f", "own_empty", "GAUGE"]],
}


def planned(plan: list[Any]) -> Inference:
    return Inference("metering", {"PLAN": given("BYTES", json.dumps(plan))}, timeout_s=10)


def made(name: str, plan: list[Any]) -> Exchange:
    """Return the exchange of a plan about its own family."""
    kind = name.partition(" ")[0].upper()
    family = FAMILY.format(name.replace(" ", "_"))
    return Exchange(name, (planned([["family", "f", family, kind], *plan]).grpc(), Metrics(family)))


TOPIC = topic(
    "metrics",
    "metering",
    [
        *(made(name, plan) for name, plan in PLANS.items()),
        *(
            Exchange(f"family: {name}", (planned(plan).grpc(), Metrics("own_")))
            for name, plan in FAMILIES.items()
        ),
    ],
)
