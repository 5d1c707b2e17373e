"""Metadata, configuration and readiness of models, of versions and of names of all kinds."""

from __future__ import annotations

from urllib.parse import quote

from tests.conformance.exchange import Exchange, Grpc, get, post, topic
from tests.conformance.inference import Inference, given
from tritonpy_protos import grpc_service_pb2 as pb

MODELS = (
    "identity",
    "versions",
    "square",
    "batched",
    "labelled",
    "reshaped",
    "pair",
    "datatypes",
    "a.b+c",
)
KINDS = {"metadata": "", "config": "/config", "ready": "/ready"}
REQUESTS = {
    "ModelMetadata": pb.ModelMetadataRequest,
    "ModelConfig": pb.ModelConfigRequest,
    "ModelReady": pb.ModelReadyRequest,
}
NAMES = {
    "unknown": "not_there",
    "never loaded": "never_loaded",
    "other case": "Identity",
    "dots": "..",
    "dot": ".",
    "spaces": " ",
    "long": "x" * 2000,
    "quotes": "'quoted' \"name\"",
    "percent": "100%",
    "slash": "a/b",
    "newline": "a\nb",
    "unicode": "größe",
    "emoji": "😀",
}
NUMBERS = {
    "zero": "0",
    "other": "3",
    "leading zero": "01",
    "huge": "9" * 30,
    "past 63 bits": str(2**63),
}
TEXTS = {
    **NUMBERS,
    "negative": "-1",
    "minus two": "-2",
    "text": "x",
    "fraction": "1.5",
    "number and text": "1x",
    "spaces": " 1",
    "plus": "+1",
}
INFER = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}


def describe(model: str, version: str = "") -> tuple[Grpc, ...]:
    return tuple(
        Grpc(method, kind(name=model, version=version)) for method, kind in REQUESTS.items()
    )


def inferred(model: str, version: str = "") -> Grpc:
    return Inference(model, {"IN": given("INT32", 1)}, version=version).grpc()


def of_a_name(title: str, name: str) -> list[Exchange]:
    path = f"/v2/models/{quote(name, safe='')}"
    http = tuple(get(path + end) for end in (*KINDS.values(), "/stats"))
    statistics = Grpc("ModelStatistics", pb.ModelStatisticsRequest(name=name))
    return [
        Exchange(f"name {title}/http", (*http, post(f"{path}/infer", INFER))),
        Exchange(f"name {title}/grpc", (*describe(name), statistics, inferred(name))),
    ]


TOPIC = topic(
    "descriptions",
    " ".join(MODELS),
    [
        *(
            Exchange(
                f"{kind} of {model}",
                (get(f"/v2/models/{model}{end}"), get(f"/v2/models/{model}/versions/1{end}")),
            )
            for model in MODELS
            for kind, end in KINDS.items()
        ),
        *(
            Exchange(f"{model} by gRPC", (*describe(model), *describe(model, "1")))
            for model in MODELS
        ),
        *(
            Exchange(f"second version{end}", (get(f"/v2/models/versions/versions/2{end}"),))
            for end in KINDS.values()
        ),
        *(
            Exchange(
                f"version {title}/http",
                (
                    *(
                        get(f"/v2/models/identity/versions/{number}{end}")
                        for end in (*KINDS.values(), "/stats")
                    ),
                    post(f"/v2/models/identity/versions/{number}/infer", INFER),
                ),
            )
            for title, number in NUMBERS.items()
        ),
        *(
            Exchange(
                f"version {title}/grpc",
                (
                    *describe("identity", number),
                    Grpc(
                        "ModelStatistics",
                        pb.ModelStatisticsRequest(name="identity", version=number),
                    ),
                    inferred("identity", number),
                ),
            )
            for title, number in TEXTS.items()
        ),
        *(exchange for title, name in NAMES.items() for exchange in of_a_name(title, name)),
        *(
            Exchange(
                f"inference by version {number or 'of the choice of the server'}",
                (
                    Inference("versions", {"IN": given("INT32", 1)}, version=number).grpc(),
                    Inference("versions", {"IN": given("INT32", 1)}, version=number).json(),
                ),
                {"versions": 2},
            )
            for number in ("", "1", "3")
        ),
        Exchange(
            "a name with punctuation", (inferred("a.b+c"), post("/v2/models/a.b+c/infer", INFER))
        ),
        Exchange("name empty/grpc", (*describe(""), inferred(""))),
    ],
)
