"""Models that load models, and models with a readiness function."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, IndexEntry, get, load, topic, unload
from tests.conformance.inference import Inference, given, text
from tritonpy_protos import grpc_service_pb2 as pb

CONFIG = json.dumps({"backend": "python", "parameters": {"what": {"string_value": "batched"}}})
SOURCE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([42], np.int32))]) for _ in requests]
"""
OVERRIDE = json.dumps(
    {
        "backend": "python",
        "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
    }
)
PLANS: dict[str, tuple[str, list[Any]]] = {
    "load and unload": (
        "versions",
        [
            ["ready", "versions"],
            ["load", "versions"],
            ["ready", "versions"],
            ["exec", "versions"],
            ["unload", "versions"],
        ],
    ),
    "ready by version": (
        "versions",
        [
            ["load", "versions"],
            ["ready", "versions", "1"],
            ["ready", "versions", "2"],
            ["ready", "versions", "x"],
        ],
    ),
    "unknown model": (
        "not_there",
        [["ready", "not_there"], ["load", "not_there"], ["unload", "not_there"]],
    ),
    "a model that fails": ("no_class", [["load", "no_class"], ["ready", "no_class"]]),
    "with a configuration": (
        "completing",
        [["load", "completing", CONFIG], ["ready", "completing"]],
    ),
    "with a bad configuration": (
        "completing",
        [["load", "completing", "{"], ["load", "completing", '{"oops": 1}']],
    ),
    "with files": (
        "made",
        [
            ["load_files", "made", OVERRIDE, {"file:1/model.py": SOURCE}],
            ["ready", "made"],
            ["exec", "made"],
        ],
    ),
    "with files and no configuration": (
        "made_too",
        [["load_files", "made_too", "", {"file:1/model.py": SOURCE}]],
    ),
    "with a strange file": (
        "made_three",
        [["load_files", "made_three", OVERRIDE, {"1/model.py": SOURCE}]],
    ),
    "with dependents": (
        "versions",
        [["load", "versions"], ["unload", "versions", True], ["ready", "versions"]],
    ),
    "wrong arguments": (
        "versions",
        [["load"], ["load", 7], ["ready", "versions", 1], ["unload", "versions", "x"]],
    ),
}
UNTOUCHED = {"wrong arguments", "with a bad configuration"}
"""Plans that load nothing: what the index says of their model is what happened before."""
VERSIONS = "/v2/models/versions/ready"
READY = "/v2/models/readiness/ready"
WHAT = ("true", "false", "raises", "number", "none", "coroutine", "coroutine_false", "not_there")


def planned(name: str, model: str, plan: list[Any]) -> Exchange:
    request = Inference("controlling", {"PLAN": given("BYTES", json.dumps(plan))}, timeout_s=20)
    listed = () if name in UNTOUCHED else (IndexEntry(model),)
    return Exchange(name, (request.grpc(), *listed, unload(model)))


def ready(what: str) -> Exchange:
    """Return the exchange of a model whose readiness is set by a request."""
    request = Grpc("ModelReady", pb.ModelReadyRequest(name="readiness"))
    return Exchange(
        f"ready: {what}",
        (
            Inference("readiness", {"WHAT": text(what)}).grpc(),
            get(READY),
            request,
            IndexEntry("readiness"),
        ),
    )


TOPIC = topic(
    "control",
    "controlling readiness",
    [
        *(planned(name, model, plan) for name, (model, plan) in PLANS.items()),
        *(ready(what) for what in WHAT),
        Exchange(
            "ready: unknown model",
            (
                get("/v2/models/never_there/ready"),
                Grpc("ModelReady", pb.ModelReadyRequest(name="never_there")),
            ),
        ),
        Exchange(
            "ready: unknown version",
            (
                get("/v2/models/readiness/versions/7/ready"),
                get("/v2/models/readiness/versions/1/ready"),
            ),
        ),
        Exchange(
            "ready: unloaded",
            (
                load("versions"),
                get(VERSIONS),
                unload("versions"),
                IndexEntry("versions"),
                get(VERSIONS),
            ),
        ),
    ],
)
