"""Warm-up requests of models, and models that fail at warm-up."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.conformance.exchange import Exchange, IndexEntry, get, load, topic, unload
from tests.conformance.inference import Given, Inference, given

TWO = {"name": "IN", "data_type": "TYPE_INT32", "dims": [2]}
TEXTS = {"name": "IN", "data_type": "TYPE_STRING", "dims": [2]}
ZERO, RANDOM = {"zero_data": True}, {"random_data": True}
SOME = given("INT32", 1, 2)
CONTROLS = {
    "sequence_batching": {
        "control_input": [
            {
                "name": "START",
                "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}],
            },
            {
                "name": "ID",
                "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_UINT64"}],
            },
        ]
    }
}


def data(kind: str, *dims: int, **how: Any) -> dict[str, Any]:
    return {"data_type": kind, "dims": list(dims), **how}


def file(name: str) -> dict[str, Any]:
    return {"input_data_file": name}


def sample(
    name: str = "sample", batch_size: int = 1, count: int = 0, **inputs: Any
) -> dict[str, Any]:
    return {"name": name, "batch_size": batch_size, "count": count, "inputs": inputs}


def configured(
    *samples: dict[str, Any], tensor: dict[str, Any] = TWO, **more: Any
) -> dict[str, Any]:
    parameters = {name: {"string_value": value} for name, value in more.pop("how", {}).items()}
    return {
        "backend": "python",
        "input": [tensor],
        "output": [{"name": "OUT", "data_type": "TYPE_STRING", "dims": [-1]}],
        "parameters": parameters,
        "model_warmup": list(samples),
        **more,
    }


def warmed(name: str, *samples: dict[str, Any], infer_with: Given = SOME, **more: Any) -> Exchange:
    """Return the exchange of a model that loads and returns its warm-up requests."""
    question = Inference("warming", {"IN": infer_with}).json()
    return Exchange(
        name, (load("warming", configured(*samples, **more)), question, unload("warming")), {}
    )


def refused(name: str, *samples: dict[str, Any], **more: Any) -> Exchange:
    loading = dataclasses.replace(
        load("warming", configured(*samples, **more)), timeout_s=12
    )  # the real server sometimes hangs
    return Exchange(name, (loading, IndexEntry("warming"), unload("warming")))


HIDDEN = {"values": "hidden"}
TOPIC = topic(
    "warm-up",
    "add_sub",
    [
        warmed("zero data", sample(IN=data("TYPE_INT32", 2, **ZERO))),
        warmed("random data", sample(IN=data("TYPE_INT32", 2, **RANDOM)), how=HIDDEN),
        warmed("data of a file", sample(IN=data("TYPE_INT32", 2, **file("eight_bytes")))),
        warmed("data of a file that is too long", sample(IN=data("TYPE_INT32", 2, **file("twelve_bytes")))),
        warmed("three times", sample(count=3, IN=data("TYPE_INT32", 2, **ZERO))),
        warmed("two samples", sample("a", 1, 2, IN=data("TYPE_INT32", 2, **ZERO)), sample("b", IN=data("TYPE_INT32", 2, **file("eight_bytes")))),
        warmed("a sample of no request", sample(batch_size=0, IN=data("TYPE_INT32", 2, **ZERO))),
        warmed("a batch", sample(batch_size=3, count=2, IN=data("TYPE_INT32", 2, **file("eight_bytes"))), infer_with=given("INT32", 1, 2, shape=(1, 2)), max_batch_size=4),
        warmed("texts of zeros", sample(IN=data("TYPE_STRING", 2, **ZERO)), tensor=TEXTS, infer_with=given("BYTES", "a", "b")),
        warmed("random texts", sample(IN=data("TYPE_STRING", 2, **RANDOM)), tensor=TEXTS, infer_with=given("BYTES", "a", "b")),
        warmed("texts of a file", sample(IN=data("TYPE_STRING", 2, **file("two_texts"))), tensor=TEXTS, infer_with=given("BYTES", "a", "b")),
        warmed("variable dimensions", sample(IN=data("TYPE_INT32", 3, **ZERO)), sample(IN=data("TYPE_INT32", 1, **ZERO)), tensor={**TWO, "dims": [-1]}),
        warmed("reshape", sample(batch_size=2, IN=data("TYPE_INT32", 2, **file("eight_bytes"))), tensor={**TWO, "reshape": {"shape": [2, 1]}}, infer_with=given("INT32", 1, 2, shape=(1, 2)), max_batch_size=2),
        warmed("several instances", sample(IN=data("TYPE_INT32", 2, **ZERO)), instance_group=[{"count": 2, "kind": "KIND_CPU"}]),
        warmed("a call to another model", sample(IN=data("TYPE_INT32", 2, **ZERO)), how={"how": "calls"}),
        warmed("other inputs than the configuration's", sample(IN=data("TYPE_INT32", 2, **ZERO), MORE=data("TYPE_FP32", 3, **ZERO))),
        Exchange(
            "a sequence model",
            (
                load("warming", configured(
                    sample("first", 2, IN=data("TYPE_INT32", 2, **ZERO), START=data("TYPE_INT32", 1, **file("four_bytes")), ID=data("TYPE_UINT64", 1, **ZERO)),
                    sample("second", 1, IN=data("TYPE_INT32", 2, **ZERO)),
                    max_batch_size=2, **CONTROLS,
                )),
                Inference("warming", {"IN": given("INT32", 1, 2, shape=(1, 2))}, parameters={"sequence_id": 7, "sequence_start": True}).json(),
                unload("warming"),
            ),
        ),
        Exchange(
            "a decoupled model",
            (
                load("warming", configured(
                    sample(batch_size=1, count=2, IN=data("TYPE_INT32", 2, **ZERO)),
                    how={"answers": "3"}, model_transaction_policy={"decoupled": True},
                )),
                get("/v2/models/warming/ready"),
                unload("warming"),
            ),
        ),
        refused("a batch for a model that does not batch", sample(batch_size=2, IN=data("TYPE_INT32", 2, **ZERO))),
        refused("a larger batch than configured", sample(batch_size=5, IN=data("TYPE_INT32", 2, **ZERO)), max_batch_size=4),
        refused("a file that is not there", sample(IN=data("TYPE_INT32", 2, **file("not_there")))),
        refused("a file that is too short", sample(IN=data("TYPE_INT32", 2, **file("four_bytes")))),
        refused("a file of too few texts", sample(IN=data("TYPE_STRING", 3, **file("two_texts"))), tensor={**TEXTS, "dims": [3]}),
        refused("open dimensions", sample(IN=data("TYPE_INT32", -1, **ZERO))),
        refused("no kind of data", sample(IN=data("TYPE_INT32", 2))),
        refused("another type", sample(IN=data("TYPE_FP32", 2, **ZERO))),
        refused("no type", sample(IN={"dims": [2], **ZERO})),
        refused("another shape", sample(IN=data("TYPE_INT32", 3, **ZERO))),
        refused("no input", sample()),
        refused("an input is missing", sample(MORE=data("TYPE_INT32", 3, **ZERO))),
        refused("an exception", sample(IN=data("TYPE_INT32", 2, **ZERO)), how={"how": "raises"}),
        refused("an error for an answer", sample("cold", IN=data("TYPE_INT32", 2, **ZERO)), how={"how": "answers an error"}),
        refused("an error for each request", sample("cold", 2, IN=data("TYPE_INT32", 2, **ZERO)), how={"how": "answers an error"}, max_batch_size=2),
        refused("the end of the process", sample(IN=data("TYPE_INT32", 2, **ZERO)), how={"how": "dies"}),
    ],
)  # fmt: skip
