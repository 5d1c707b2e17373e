"""The response cache: hits, misses and their counters."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, Families, topic
from tests.conformance.inference import Inference, given, streamed

FLAGS = (
    "--cache-config=local,size=1048576",
    "--metrics-config=summary_latencies=true",
    "--metrics-config=summary_quantiles=0.5:0.05",
    "--allow-cpu-metrics=false",
)
MODEL, OTHER, ALWAYS = "computing", "computing_together", "computing_always"


def cached_inference(
    *values: int, model: str = MODEL, shape: tuple[int, ...] | None = None, **fields: Any
) -> Inference:
    """Return an inference; exchanges use different values, unless they share a cache entry."""
    return Inference(
        model, {"IN": given("INT32", *values, shape=shape or (1, len(values)))}, **fields
    )


def twice(name: str, first: Inference, second: Inference) -> Exchange:
    """Return the exchange of two inferences in order."""
    return Exchange(name, (first.grpc(), second.grpc()), {first.model: 2})


ALL = Families("nv_cache_")
COUNTERS = Families("nv_inference_")

TOPIC = topic(
    "response cache",
    f"{MODEL} {OTHER} {ALWAYS}",
    [
        Exchange("metrics before a request", (ALL, COUNTERS)),
        twice("cached: the same question", cached_inference(1), cached_inference(1)),
        twice("cached: another question", cached_inference(2), cached_inference(3)),
        twice("cached: another id", cached_inference(4, id="one"), cached_inference(4, id="two")),
        twice("cached: another priority and time-out", cached_inference(5), cached_inference(5, parameters={"priority": 1, "timeout": 10_000_000})),
        Exchange("cached: over HTTP", (cached_inference(6).json(), cached_inference(6).json(), cached_inference(6).binary()), {MODEL: 3}),
        Exchange("cached: over every protocol", (cached_inference(7).binary(), cached_inference(7).grpc(), streamed(cached_inference(7), cached_inference(7)), cached_inference(7).json()), {MODEL: 5}),
        twice("cached: with the version and without", cached_inference(8, version="1"), cached_inference(8)),
        twice("cached: rows", cached_inference(9, 10, shape=(2, 1)), cached_inference(9, 10, shape=(2, 1))),
        twice("cached: the same outputs", cached_inference(9, outputs=("TIMES",)), cached_inference(9, outputs=("TIMES",))),
        Exchange("cached: after a refusal", (cached_inference(16, 17, 18, 19, 20, shape=(5, 1)).grpc(), cached_inference(16).grpc()), {MODEL: 1}),
        twice("cached: every output, by name and not", cached_inference(21), cached_inference(21, outputs=("OUT", "TIMES"))),
        twice("cached: a model of its own", cached_inference(1, model=OTHER), cached_inference(1, model=OTHER)),
        Exchange("cached: next to a model without the cache", (cached_inference(1, model=ALWAYS).grpc(), cached_inference(1, model=ALWAYS).grpc(), cached_inference(1).grpc()), {MODEL: 1, ALWAYS: 2}),
        twice("the same bytes in another shape", cached_inference(11, 12, shape=(2, 1)), cached_inference(11, 12, shape=(1, 2))),
        twice("other parameters", cached_inference(13, parameters={"mode": "a"}), cached_inference(13, parameters={"mode": "b"})),
        twice("fewer outputs, then all", cached_inference(14, outputs=("OUT",)), cached_inference(14)),
        twice("all outputs, then fewer", cached_inference(15), cached_inference(15, outputs=("OUT",))),
        twice("an error", cached_inference(-1), cached_inference(-1)),
        twice("no data", cached_inference(shape=(1, 0)), cached_inference(shape=(1, 0))),
        Exchange("metrics after requests", (ALL, COUNTERS)),
    ],
    FLAGS,
)  # fmt: skip
