"""Request properties in a model, and requests that are executed together."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Concurrent, Exchange, Grpc, get, post, topic
from tests.conformance.inference import Inference, both, given
from tritonpy_protos import grpc_service_pb2 as pb

PLAIN = Inference("echo_request", {"IN": given("INT32", 7)})
PARAMETERS: dict[str, dict[str, Any]] = {
    "text": {"key": "value"},
    "no text": {"key": ""},
    "quotes": {"key": 'say "hello"\\\n'},
    "unicode": {"schlüssel": "größe ✓"},
    "number": {"key": 7},
    "negative number": {"key": -7},
    "large number": {"key": 2**53 + 1},
    "true": {"key": True},
    "false": {"key": False},
    "fraction": {"key": 0.5},
    "timeout": {"timeout": 123456},
    "timeout as text": {"timeout": "123"},
    "priority": {"priority": 2},
    "sequence": {"sequence_id": 42, "sequence_start": True},
    "sequence end": {"sequence_id": 42, "sequence_end": True},
    "sequence start and end": {"sequence_id": 42, "sequence_start": True, "sequence_end": True},
    "sequence by text": {"sequence_id": "a name", "sequence_start": True},
    "sequence flag alone": {"sequence_start": True},
    "reserved": {"triton_own": 1},
}


REFUSED = {"reserved", "timeout as text"}


def rows(count: int) -> Inference:
    values = range(2 * count)
    return Inference("batched", {"IN": given("INT32", *values, shape=(count, 2))})


TOPIC = topic(
    "requests",
    "echo_request batched",
    [
        both("plain", PLAIN),
        both("id", PLAIN.named(id="an id")),
        both("id with spaces and quotes", PLAIN.named(id=' "strange" id ✓ ')),
        both("optional input", PLAIN.named(inputs={**PLAIN.inputs, "OPTIONAL": given("INT32", 8)})),
        both(
            "inputs in another order",
            PLAIN.named(inputs={"OPTIONAL": given("INT32", 8), **PLAIN.inputs}),
        ),
        both("one output", PLAIN.named(outputs=("REQUEST",))),
        both("outputs in another order", PLAIN.named(outputs=("REQUEST", "ARGS"))),
        both("unknown output", PLAIN.named(outputs=("NOT_THERE",)), counted=False),
        both("version", PLAIN.named(version="1")),
        both("unknown version", PLAIN.named(version="3"), counted=False),
        *(
            both(
                f"parameters: {name}",
                PLAIN.named(parameters=parameters),
                counted=name not in REFUSED,
            )
            for name, parameters in PARAMETERS.items()
        ),
        Exchange(
            "parameters: several",
            (PLAIN.named(parameters={"z": 1, "a": "two", "m": True}).binary(),),
        ),
        Exchange(
            "parameters of a list", (post(PLAIN.path, {"parameters": {"key": [1]}, "inputs": []}),)
        ),
        Exchange(
            "metadata", (get("/v2/models/echo_request"), get("/v2/models/echo_request/config"))
        ),
        Exchange(
            "metadata by gRPC",
            (
                Grpc("ModelMetadata", pb.ModelMetadataRequest(name="echo_request")),
                Grpc("ModelConfig", pb.ModelConfigRequest(name="echo_request")),
                Grpc("ModelReady", pb.ModelReadyRequest(name="echo_request")),
            ),
        ),
        Exchange("four together", (Concurrent((rows(1).grpc(),) * 4),), {"batched": 4}),
        Exchange("four rows at once", (rows(4).grpc(),), {"batched": 1}),
        Exchange("two requests of two rows", (Concurrent((rows(2).grpc(),) * 2),), {"batched": 2}),
        Exchange("too many rows", (rows(9).grpc(), rows(9).binary())),
        Exchange("batched metadata", (get("/v2/models/batched"), get("/v2/models/batched/config"))),
    ],
)
