"""The statistics of models, as JSON and as messages."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Grpc, get, post, topic
from tests.conformance.inference import Inference, given, streamed
from tritonpy_protos import grpc_service_pb2 as pb

ONE = Inference("identity", {"IN": given("INT32", 1)})
BATCH = Inference("labelled", {"IN": given("FP32", *range(12), shape=(3, 4))})
WRONG = Inference("identity", {"IN": given("FP32", 1)})
MANY = Inference("square", {"IN": given("INT32", 2, shape=(1, 1))}, id="many")


def statistics(model: str, version: str = "") -> tuple[object, ...]:
    path = f"/versions/{version}" if version else ""
    return (
        get(f"/v2/models/{model}{path}/stats"),
        Grpc("ModelStatistics", pb.ModelStatisticsRequest(name=model, version=version)),
    )


TOPIC = topic(
    "statistics",
    "identity labelled square versions",
    [
        *(
            Exchange(
                f"untouched {model}{version and ' version '}{version}", statistics(model, version)
            )
            for model, version in (
                ("identity", ""),
                ("versions", ""),
                ("versions", "1"),
                ("versions", "2"),
                ("square", "1"),
            )
        ),
        Exchange("after a request", (ONE.grpc(), ONE.json()), {"identity": 2}),
        Exchange("and its JSON", statistics("identity")),
        Exchange(
            "after a refused request",
            (WRONG.grpc(), WRONG.binary(), get("/v2/models/identity/stats")),
            {"identity": 0},
        ),
        Exchange("after a batch", (BATCH.grpc(),), {"labelled": 1}),
        Exchange("and its JSON by batch", statistics("labelled")),
        Exchange("after several answers", (streamed(MANY),), {"square": 1}),
        Exchange(
            "after an empty answer",
            (streamed(MANY.named(inputs={"IN": given("INT32", 0, shape=(1, 1))})),),
            {"square": 1},
        ),
        Exchange("all versions at once", (get("/v2/models/versions/stats"),)),
        Exchange("unknown model", statistics("not_there")),
        Exchange("unknown version", statistics("identity", "7")),
        Exchange("a model that is not loaded", statistics("never_loaded")),
        Exchange(
            "a method that is not taken",
            (post("/v2/models/stats"), post("/v2/models/identity/stats", {})),
        ),
        Exchange(
            "a version without a name",
            (Grpc("ModelStatistics", pb.ModelStatisticsRequest(version="1")),),
        ),
    ],
)
