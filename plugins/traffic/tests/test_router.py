from __future__ import annotations

import msgspec
import pytest

from tritonpy import InvalidArgument, NotFound
from tritonpy.frontend import OperationCall
from tritonpy_testing import ToyEngine

from .scripted_router import ScriptedRouter, infer, request_of, router_of

A = {"targets": [{"model": "a", "version": 1}]}


def test_requests_for_models_and_versions_are_forwarded(engine: ScriptedRouter) -> None:
    router = router_of(engine, routes={"a": {"targets": [{"model": "b"}]}})
    (forwarded,) = infer(router, "b")
    assert forwarded.model_name == "b"
    (versioned,) = infer(router, "a", model_version=2)
    assert (versioned.model_name, versioned.model_version) == ("a", 2)
    infer(router, "a")
    assert engine.calls == [("b", -1), ("a", 2), ("b", -1)]


def test_deleting_a_route_keeps_requests_in_flight(engine: ScriptedRouter) -> None:
    engine.models["a", 1] = engine.hold
    router = router_of(engine, routes={"route": A})
    request, responses = request_of("route")
    router.infer(request)
    router._table.delete("route", None)
    engine.good(request)
    assert [response.model_name for response in responses] == ["route"]
    with pytest.raises(InvalidArgument, match="'route' is not found"):
        infer(router)


def test_metadata_calls_go_to_the_first_target_that_serves() -> None:
    with ToyEngine() as toy:
        targets = [{"model": "missing"}, {"model": "identity", "version": 1}, {"model": "text"}]
        router = router_of(toy, routes={"route": {"targets": targets}})  # type: ignore[arg-type]
        assert router.is_model_ready("route")
        assert router.model_metadata("route") == msgspec.structs.replace(
            toy.model_metadata("identity"), name="route"
        )
        config = router.model_config("route")
        assert (config.name, config.input) == ("route", toy.model_config("identity").input)
        assert router.model_config("route") is config
        assert router.model_folder("route") == toy.model_folder("identity")
        assert router.model_folder("text") == toy.model_folder("text")
        assert [each.name for each in router.statistics("route")] == ["route"]
        assert router.statistics() == toy.statistics()
        with pytest.raises(InvalidArgument):
            router.model_metadata("route", 1)
        for name in ("identity", "text"):
            toy.unload_model(name)
        assert not router.is_model_ready("route")
        with pytest.raises(NotFound, match="Request for unknown model: 'route' is not found"):
            router.model_config("route")
        router.close()


def test_metrics_cover_each_route_target_and_copy(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = engine.bad
    canary = {
        "model": "a",
        "version": 2,
        "max_failed_share": 1,
        "steps": [{"share": 1, "seconds": 3600}],
    }
    router = router_of(engine, routes={"route": {**A, "canary": canary, "shadow": {"model": "b"}}})
    for _ in range(12):
        infer(router)
    router.close()
    families = {family.name: family for family in router.metrics.snapshot()}  # type: ignore[attr-defined]
    values = {
        (name, *sorted(metric.labels.values())): metric.value
        for name, family in families.items()
        for metric in family.metrics
        if metric.histogram is None
    }
    failures = values["tritonpy_route_failures", "2", "a", "route"]
    assert failures == values["tritonpy_route_requests", "2", "a", "route"] >= 2
    assert values["tritonpy_route_requests", "1", "a", "route"] + failures == 12
    assert values["tritonpy_route_canary_rollbacks", "route"] == 1
    assert (
        values["tritonpy_route_canary_step", "route"]
        == values["tritonpy_route_canary_share", "route"]
        == 0
    )
    assert (
        sum(value for key, value in values.items() if key[0] == "tritonpy_route_shadow_copies")
        == 12
    )
    (latency,) = [
        metric.histogram
        for metric in families["tritonpy_route_latency_seconds"].metrics
        if metric.labels["version"] == "1"
    ]
    assert latency is not None
    assert latency.count == 12 - failures


def test_operations_return_their_results(engine: ScriptedRouter) -> None:
    router = router_of(engine)
    operations = {
        operation.name: response for operation, response in router.router_operations().items()
    }
    spec = {**A, "canary": {"model": "a", "version": 2}}
    made = operations["put_route"](OperationCall({"route": "one"}, spec, 0))
    assert (made["name"], made["warnings"], made["canary"]["state"]) == ("one", [], "running")
    again = operations["put_route"](
        OperationCall({"route": "one"}, made["route"], made["revision"])
    )
    assert again["route"] == made["route"]
    rolled = operations["roll_back_canary"](OperationCall({"route": "one"}))
    assert (rolled["canary"]["state"], rolled["canary"]["reason"]) == ("rolled back", "requested")
    operations["put_route"](OperationCall({"route": "one"}, spec))
    promoted = operations["promote_canary"](OperationCall({"route": "one"}))
    assert promoted["route"]["targets"] == [{"model": "a", "version": 2, "weight": 1.0}]
    assert promoted["statistics"]["promotions"] == promoted["statistics"]["rollbacks"] == 1
    assert [each["name"] for each in operations["list_routes"](OperationCall())["routes"]] == [
        "one"
    ]
    assert operations["delete_route"](OperationCall({"route": "one"})) == {}
    with pytest.raises(NotFound):
        operations["get_route"](OperationCall({"route": "one"}))
