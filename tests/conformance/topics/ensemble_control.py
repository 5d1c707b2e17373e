"""Ensembles are loaded and unloaded, and what they stand on."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Grpc, Http, Listed, Step, get, load, post, topic, unload
from tests.conformance.inferring import Inference, given
from tritonpy_protos import grpc_service_pb2 as pb

STANDING = ("standing_higher", "standing", "stood_on", "stood_on_too")
LEFT = (*(unload(name) for name in STANDING), *(Listed(name) for name in STANDING))
CIRCLE = ("circling_one", "circling_two", "circling_three")


def with_dependents(model: str) -> Http:
    """Return the request that unloads a model and what only it stands on."""
    return post(f"/v2/repository/models/{model}/unload", {"parameters": {"unload_dependents": True}})


def by_grpc(model: str) -> Grpc:
    request = pb.RepositoryModelUnloadRequest(model_name=model)
    request.parameters["unload_dependents"].bool_param = True
    return Grpc("RepositoryModelUnload", request)


def asked(*models: str) -> tuple[Step, ...]:
    """Return whether each is listed, known and answers."""
    return tuple(
        step
        for model in models
        for step in (
            Listed(model),
            get(f"/v2/models/{model}"),
            Inference(model, {"X": given("INT32", 1, 2)}).grpc(),
        )
    )


def ready(model: str) -> tuple[Step, ...]:
    """Return whether it is ready, in every way to ask that; the server's own readiness depends on what failed in it before."""
    return (
        get(f"/v2/models/{model}/ready"),
        get(f"/v2/models/{model}/versions/1/ready"),
        Grpc("ModelReady", pb.ModelReadyRequest(name=model)),
    )


def told(name: str, *steps: Step) -> Exchange:
    """Return the exchange that leaves nothing loaded."""
    return Exchange(name, (*steps, *LEFT))


TOPIC = topic(
    "ensemble control",
    "",
    [
        told("loads its members", load("standing"), *asked("standing"), Listed("stood_on"), Listed("stood_on_too")),
        told("loads members of members", load("standing_higher"), *asked("standing_higher", "standing")),
        told("is loaded twice", load("standing"), load("standing"), Listed("standing")),
        told("what is said of it", load("standing"), get("/v2/models/standing/config"), get("/v2/models/standing/stats")),
        told("is ready", load("standing"), *ready("standing")),
        told("is not ready without its member", load("standing"), unload("stood_on"), Listed("stood_on"), *ready("standing")),
        told("loses a member", load("standing_higher"), unload("stood_on_too"), Listed("stood_on_too"), *asked("standing", "standing_higher")),
        told(
            "gets its member back",
            load("standing_higher"), unload("stood_on_too"), Listed("stood_on_too"), load("stood_on_too"), *asked("standing", "standing_higher"),
        ),
        told("leaves its members", load("standing"), unload("standing"), *asked("standing"), Listed("stood_on")),
        told("takes its members along", load("standing"), with_dependents("standing"), *asked("standing"), Listed("stood_on"), Listed("stood_on_too")),
        told("takes its members along/grpc", load("standing"), by_grpc("standing"), Listed("standing"), Listed("stood_on")),
        told("leaves what was asked for", load("stood_on"), load("standing"), with_dependents("standing"), Listed("stood_on"), Listed("stood_on_too")),
        told("leaves what was asked for later", load("standing"), load("stood_on"), with_dependents("standing"), Listed("stood_on"), Listed("stood_on_too")),
        told(
            "leaves what another stands on",
            load("standing_higher"), load("standing"), with_dependents("standing_higher"),
            Listed("standing_higher"), Listed("standing"), Listed("stood_on"),
        ),
        told("takes all levels along", load("standing_higher"), with_dependents("standing_higher"), *(Listed(name) for name in STANDING)),
        told("a member goes with dependents", load("standing"), with_dependents("stood_on"), Listed("stood_on"), *asked("standing"), Listed("stood_on_too")),
        told(
            "a member is loaded anew as another",
            load("standing"),
            load("stood_on", {"backend": "python", "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}),
            *asked("standing"), load("standing"), Listed("standing"),
        ),
        told(
            "a member is loaded anew as it was",
            load("standing"), Inference("standing", {"X": given("INT32", 1)}).grpc(),
            load("stood_on", {"backend": "python", "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}], "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}]}),
            *asked("standing"), get("/v2/models/standing/stats"),
        ),
        Exchange(
            "a member fails",
            (load("standing_on_trouble"), Listed("standing_on_trouble"), unload("standing_on_trouble"), Listed("standing_on_trouble"), unload("never_stood_on")),
        ),
        *(Exchange(f"a circle/{name}", (load(name), Listed(name), *(unload(each) for each in CIRCLE))) for name in CIRCLE),
        Exchange("a circle of one", (load("circling_alone"), Listed("circling_alone"), unload("circling_alone"))),
    ],
)  # fmt: skip
