"""Loading and unloading of ensembles and their members."""

from __future__ import annotations

from tests.conformance.exchange import (
    Exchange,
    Grpc,
    Http,
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

STANDING = ("standing_higher", "standing", "stood_on", "stood_on_too")
LEFT = (*(unload(name) for name in STANDING), *(IndexEntry(name) for name in STANDING))
CIRCLE = ("circling_one", "circling_two", "circling_three")


def with_dependents(model: str) -> Http:
    """Return the request that unloads a model with its dependents."""
    return post(
        f"/v2/repository/models/{model}/unload", {"parameters": {"unload_dependents": True}}
    )


def by_grpc(model: str) -> Grpc:
    request = pb.RepositoryModelUnloadRequest(model_name=model)
    request.parameters["unload_dependents"].bool_param = True
    return Grpc("RepositoryModelUnload", request)


def queries(*models: str) -> tuple[Step, ...]:
    """Return the queries for index entry, metadata and inference of each model."""
    return tuple(
        step
        for model in models
        for step in (
            IndexEntry(model),
            get(f"/v2/models/{model}"),
            Inference(model, {"X": given("INT32", 1, 2)}).grpc(),
        )
    )


def ready(model: str) -> tuple[Step, ...]:
    """Return all readiness queries for a model; server readiness depends on earlier failures in it."""
    return (
        get(f"/v2/models/{model}/ready"),
        get(f"/v2/models/{model}/versions/1/ready"),
        Grpc("ModelReady", pb.ModelReadyRequest(name=model)),
    )


def reverted(name: str, *steps: Step) -> Exchange:
    """Return an exchange that unloads everything at its end."""
    return Exchange(name, (*steps, *LEFT))


TOPIC = topic(
    "ensemble control",
    "",
    [
        reverted("loads its members", load("standing"), *queries("standing"), IndexEntry("stood_on"), IndexEntry("stood_on_too")),
        reverted("loads members of members", load("standing_higher"), *queries("standing_higher", "standing")),
        reverted("is loaded twice", load("standing"), load("standing"), IndexEntry("standing")),
        reverted("configuration and statistics", load("standing"), get("/v2/models/standing/config"), get("/v2/models/standing/stats")),
        reverted("is ready", load("standing"), *ready("standing")),
        reverted("is not ready without its member", load("standing"), unload("stood_on"), IndexEntry("stood_on"), *ready("standing")),
        reverted("loses a member", load("standing_higher"), unload("stood_on_too"), IndexEntry("stood_on_too"), *queries("standing", "standing_higher")),
        reverted(
            "gets its member back",
            load("standing_higher"), unload("stood_on_too"), IndexEntry("stood_on_too"), load("stood_on_too"), *queries("standing", "standing_higher"),
        ),
        reverted("leaves its members", load("standing"), unload("standing"), *queries("standing"), IndexEntry("stood_on")),
        reverted("takes its members along", load("standing"), with_dependents("standing"), *queries("standing"), IndexEntry("stood_on"), IndexEntry("stood_on_too")),
        reverted("takes its members along/grpc", load("standing"), by_grpc("standing"), IndexEntry("standing"), IndexEntry("stood_on")),
        reverted("keeps explicitly loaded members", load("stood_on"), load("standing"), with_dependents("standing"), IndexEntry("stood_on"), IndexEntry("stood_on_too")),
        reverted("keeps members loaded explicitly later", load("standing"), load("stood_on"), with_dependents("standing"), IndexEntry("stood_on"), IndexEntry("stood_on_too")),
        reverted(
            "keeps members of other ensembles",
            load("standing_higher"), load("standing"), with_dependents("standing_higher"),
            IndexEntry("standing_higher"), IndexEntry("standing"), IndexEntry("stood_on"),
        ),
        reverted("takes all levels along", load("standing_higher"), with_dependents("standing_higher"), *(IndexEntry(name) for name in STANDING)),
        reverted("a member goes with dependents", load("standing"), with_dependents("stood_on"), IndexEntry("stood_on"), *queries("standing"), IndexEntry("stood_on_too")),
        reverted(
            "a member is reloaded with changes",
            load("standing"),
            load("stood_on", {"backend": "python", "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}),
            *queries("standing"), load("standing"), IndexEntry("standing"),
        ),
        reverted(
            "a member is reloaded unchanged",
            load("standing"), Inference("standing", {"X": given("INT32", 1)}).grpc(),
            load("stood_on", {"backend": "python", "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}], "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}]}),
            *queries("standing"), get("/v2/models/standing/stats"),
        ),
        Exchange(
            "a member fails",
            (load("standing_on_trouble"), IndexEntry("standing_on_trouble"), unload("standing_on_trouble"), IndexEntry("standing_on_trouble"), unload("never_stood_on")),
        ),
        *(Exchange(f"a circle/{name}", (load(name), IndexEntry(name), *(unload(each) for each in CIRCLE))) for name in CIRCLE),
        Exchange("a circle of one", (load("circling_alone"), IndexEntry("circling_alone"), unload("circling_alone"))),
    ],
)  # fmt: skip
