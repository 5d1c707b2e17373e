"""The response cache: what is answered without the model, what is not, and how both are counted."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, Families, topic
from tests.conformance.inferring import Inference, given, streamed

FLAGS = (
    "--cache-config=local,size=1048576",
    "--metrics-config=summary_latencies=true",
    "--metrics-config=summary_quantiles=0.5:0.05",
    "--allow-cpu-metrics=false",
)
MODEL, OTHER, ALWAYS = "computing", "computing_together", "computing_always"


def asks(*values: int, model: str = MODEL, shape: tuple[int, ...] | None = None, **fields: Any) -> Inference:
    """Return an inference; no two exchanges ask with the same values, unless they mean to."""
    return Inference(model, {"IN": given("INT32", *values, shape=shape or (1, len(values)))}, **fields)


def twice(name: str, first: Inference, second: Inference) -> Exchange:
    """Return the exchange of two questions, one after the other."""
    return Exchange(name, (first.grpc(), second.grpc()), {first.model: 2})


ALL = Families("nv_cache_")
COUNTERS = Families("nv_inference_")

TOPIC = topic(
    "response cache",
    f"{MODEL} {OTHER} {ALWAYS}",
    [
        Exchange("metrics before a request", (ALL, COUNTERS)),
        twice("asked: the same question", asks(1), asks(1)),
        twice("asked: another question", asks(2), asks(3)),
        twice("asked: another id", asks(4, id="one"), asks(4, id="two")),
        twice("asked: another priority and time-out", asks(5), asks(5, parameters={"priority": 1, "timeout": 10_000_000})),
        Exchange("asked: over HTTP", (asks(6).json(), asks(6).json(), asks(6).binary()), {MODEL: 3}),
        Exchange("asked: over every protocol", (asks(7).binary(), asks(7).grpc(), streamed(asks(7), asks(7)), asks(7).json()), {MODEL: 5}),
        twice("asked: with the version and without", asks(8, version="1"), asks(8)),
        twice("asked: rows", asks(9, 10, shape=(2, 1)), asks(9, 10, shape=(2, 1))),
        twice("asked: the same outputs", asks(9, outputs=("TIMES",)), asks(9, outputs=("TIMES",))),
        Exchange("asked: after a refusal", (asks(16, 17, 18, 19, 20, shape=(5, 1)).grpc(), asks(16).grpc()), {MODEL: 1}),
        twice("asked: every output, by name and not", asks(21), asks(21, outputs=("OUT", "TIMES"))),
        twice("asked: a model of its own", asks(1, model=OTHER), asks(1, model=OTHER)),
        Exchange("asked: beside a model that does not ask for it", (asks(1, model=ALWAYS).grpc(), asks(1, model=ALWAYS).grpc(), asks(1).grpc()), {MODEL: 1, ALWAYS: 2}),
        twice("the same bytes in another shape", asks(11, 12, shape=(2, 1)), asks(11, 12, shape=(1, 2))),
        twice("other parameters", asks(13, parameters={"mode": "a"}), asks(13, parameters={"mode": "b"})),
        twice("fewer outputs, then all", asks(14, outputs=("OUT",)), asks(14)),
        twice("all outputs, then fewer", asks(15), asks(15, outputs=("OUT",))),
        twice("an error", asks(-1), asks(-1)),
        twice("no data", asks(shape=(1, 0)), asks(shape=(1, 0))),
        Exchange("metrics after requests", (ALL, COUNTERS)),
    ],
    FLAGS,
)  # fmt: skip
