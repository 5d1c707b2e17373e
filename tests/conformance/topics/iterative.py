"""Iterative sequences: models that reschedule a request."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Concurrent, Exchange, get, post, topic
from tests.conformance.inference import Inference, both, given, streamed

EMPTY_FINAL = {"triton_enable_empty_final_response": True}
MODELS = ("iterating", "iterating_oldest")
TENSOR = {"name": "TURNS", "data_type": "TYPE_INT32", "dims": [1]}


def turns(count: int, model: str = "iterating", what: str = "", **more: Any) -> Inference:
    """Return a request for `count` executions."""
    inputs = {"TURNS": given("INT32", count, shape=(1, 1))}
    if what:
        inputs["WHAT"] = given("BYTES", what, shape=(1, 1))
    return Inference(model, inputs, timeout_s=10, **more)


def own_id(model: str) -> Exchange:
    """Return the exchange of a client with its own sequence id, which each request restarts."""
    started, bare = {"sequence_id": 7_000_000, "sequence_start": True}, {"sequence_id": 7_000_000}
    return Exchange(
        f"{model}: an id of the client's",
        (
            turns(2, model, parameters=bare).binary(),
            turns(2, model, parameters=started).binary(),
            turns(2, model, parameters=bare).binary(),
            turns(3, model, parameters=started).grpc(),
        ),
    )


def decoupled() -> list[Exchange]:
    model = "iterating_decoupled"
    return [
        Exchange(
            f"{model}: {count} answers", (streamed(turns(count, model, id="many")),), {model: 1}
        )
        for count in (1, 4)
    ] + [
        Exchange(
            f"{model}: the empty final answer", (streamed(turns(2, model, parameters=EMPTY_FINAL)),)
        ),
        Exchange(
            f"{model}: raises", (streamed(turns(3, model, "raise")), streamed(turns(1, model)))
        ),
        Exchange(
            f"{model}: generate_stream",
            (post(f"/v2/models/{model}/generate_stream", {"TURNS": 3}),),
        ),
        Exchange(
            f"{model}: several streams",
            (
                Concurrent(
                    tuple(streamed(turns(count, model, id=f"of {count}")) for count in (2, 5, 3))
                ),
            ),
        ),
    ]


TOPIC = topic(
    "iterative",
    "iterating iterating_oldest iterating_decoupled handing_back",
    [
        *(
            both(f"{model}: {count} turns", turns(count, model))
            for model in MODELS
            for count in (1, 2, 5)
        ),
        *(
            Exchange(f"{model}: generate", (post(f"/v2/models/{model}/generate", {"TURNS": 3}),))
            for model in MODELS
        ),
        *(
            Exchange(
                f"{model}: together",
                (Concurrent(tuple(turns(count, model).grpc() for count in (1, 4, 2, 6))),),
                {model: 4},
            )
            for model in MODELS
        ),
        *(own_id(model) for model in MODELS),
        *(
            Exchange(
                f"{model}: flags without an id",
                (turns(2, model, parameters={"sequence_start": True}).binary(),),
            )
            for model in MODELS
        ),
        *(
            Exchange(
                f"{model}: raises in its second turn",
                (turns(3, model, "raise").binary(), turns(2, model).binary()),
            )
            for model in MODELS
        ),
        Exchange(
            "an answer to what is handed back",
            (turns(2, what="answer").binary(), turns(2).binary()),
        ),
        Exchange(
            "too many rows",
            (Inference("iterating", {"TURNS": given("INT32", 1, 1, shape=(2, 1))}).binary(),),
        ),
        *decoupled(),
        Exchange(
            "not iterative",
            (
                turns(2, "handing_back", parameters={"sequence_id": 3, "sequence_start": True})
                .named(timeout_s=3)
                .binary(),
            ),
        ),
        Exchange("metadata", (get("/v2/models/iterating"), get("/v2/models/iterating/config"))),
    ],
)
