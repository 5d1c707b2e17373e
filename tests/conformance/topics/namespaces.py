"""Two repositories with models of the same names."""

from __future__ import annotations

from tests.conformance.exchange import (
    Exchange,
    Families,
    Grpc,
    IndexEntry,
    Step,
    get,
    load,
    post,
    topic,
    unload,
)
from tests.conformance.inference import Inference, given
from tritonpy_protos import grpc_service_pb2 as pb

ALL = ("named_here", "named_second", "named_twice", "named_across", "only_second", "stood_on")
LEFT = (*(unload(name) for name in ALL), *(IndexEntry(name) for name in ALL))


def number(model: str, tensor: str = "X") -> Step:
    return Inference(model, {tensor: given("INT32", 3)}).grpc()


def queries(model: str) -> tuple[Step, ...]:
    """Return every query for a model by its name."""
    path = f"/v2/models/{model}"
    return (
        IndexEntry(model), number(model, "IN"), get(path), get(f"{path}/config"), get(f"{path}/stats"),
        Grpc("ModelMetadata", pb.ModelMetadataRequest(name=model)), Grpc("ModelConfig", pb.ModelConfigRequest(name=model)),
        Grpc("ModelStatistics", pb.ModelStatisticsRequest(name=model)),
    )  # fmt: skip


def named(name: str, *steps: Step) -> Exchange:
    """Return an exchange that unloads everything at its end."""
    return Exchange(name, (*steps, *LEFT))


TOPIC = topic(
    "namespaces",
    "",
    [
        named("nothing is loaded", number("stood_on", "IN"), *(IndexEntry(name) for name in ALL)),
        named("a name in one repository", load("only_second"), *queries("only_second"), unload("only_second"), IndexEntry("only_second"), number("only_second", "IN")),
        named("a name in both", load("stood_on"), *queries("stood_on"), unload("stood_on"), IndexEntry("stood_on"), number("stood_on", "IN")),
        named("each finds its own", load("named_here"), load("named_second"), number("named_here"), number("named_second"), number("stood_on", "IN")),
        named("across", load("named_across"), number("named_across"), get("/v2/models/named_across/config"), number("only_second", "IN")),
        named("an ensemble in both", load("named_twice"), IndexEntry("named_twice"), number("named_twice"), load("named_here"), number("named_here")),
        named("their configurations", load("named_here"), load("named_second"), get("/v2/models/named_here/config"), get("/v2/models/named_second/config")),
        named("they lose their members", load("named_here"), load("named_second"), unload("stood_on"), IndexEntry("stood_on"), IndexEntry("named_here"), number("named_here"), number("named_second")),
        named(
            "they take their members along",
            load("named_here"), load("named_second"),
            post("/v2/repository/models/named_here/unload", {"parameters": {"unload_dependents": True}}),
            IndexEntry("named_here"), number("named_second"), number("stood_on", "IN"),
        ),
        named("does not fit", load("named_here"), unload("named_here"), load("named_here", {"platform": "ensemble", "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [{"name": "Y", "data_type": "TYPE_INT32", "dims": [-1]}], "ensemble_scheduling": {"step": [{"model_name": "stood_on", "model_version": -1, "input_map": {"IN": "X"}, "output_map": {"OUT": "Y"}}]}}), IndexEntry("named_here")),
        named("a name that is nowhere", load("not_there"), unload("not_there"), number("not_there")),
        named("metrics", load("named_here"), load("named_second"), number("named_here"), Families("nv_inference_request_success", values=True), Families("nv_inference_pending")),
    ],
    flags=("--model-namespacing=true", "--model-repository={second_repository}"),
)  # fmt: skip
