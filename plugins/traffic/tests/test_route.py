from __future__ import annotations

import logging
from typing import Any

import pytest

from tritonpy import (
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    QueueFull,
    ResourceExhausted,
    SequenceInfo,
    TritonError,
    Unavailable,
)
from tritonpy.frontend import Sink
from tritonpy_traffic.route import Route
from tritonpy_traffic.router import TrafficRouter

from .scripted_router import ScriptedRouter, infer, request_of, router_of

A, B = {"model": "a", "version": 1}, {"model": "b"}
CANARY = {
    "model": "a",
    "version": 2,
    "steps": [{"share": 1, "requests": 1000}],
    "max_failed_share": 1,
}


def routed(engine: ScriptedRouter, **spec: Any) -> tuple[TrafficRouter, Route]:
    router = router_of(engine, routes={"route": {"targets": [A], **spec}})
    return router, router._table.get("route")


def test_responses_have_the_route_name_and_the_target_version(engine: ScriptedRouter) -> None:
    router, _ = routed(engine)
    (response,) = infer(router)
    assert (response.model_name, response.model_version) == ("route", 1)
    assert engine.calls == [("a", 1)]


def test_a_rejected_request_is_restored(engine: ScriptedRouter) -> None:
    error = InvalidArgument("an input is missing")
    engine.models["a", 1] = engine.rejecting(error)
    router, _ = routed(engine)
    request, responses = request_of("route")
    sink = request.sink
    with pytest.raises(InvalidArgument) as caught:
        router.infer(request)
    assert caught.value is error
    assert (request.model_name, request.model_version, request.sink, responses) == (
        "route",
        -1,
        sink,
        [],
    )


def test_an_unexpected_error_is_raised_unchanged(engine: ScriptedRouter) -> None:
    def broken(_request: InferRequest) -> None:
        raise ZeroDivisionError

    engine.models["a", 1] = broken
    router, _ = routed(engine, shadow=B)
    request, _ = request_of("route")
    with pytest.raises(ZeroDivisionError):
        router.infer(request)
    assert request.model_name == "route"
    assert router._table.get("route").shadow_traffic.to_json()["open"] == 0  # type: ignore[union-attr]


def test_a_missing_target_is_skipped_and_logged_once(
    engine: ScriptedRouter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    router, route = routed(engine, targets=[A, {**B, "weight": 0.000001}])
    del engine.models["a", 1]
    for _ in range(3):
        infer(router)
    assert [target_counters.skipped for target_counters in route.counters.all()] == [3, 0]
    engine.models["a", 1] = engine.good
    infer(router)
    del engine.models["a", 1]
    infer(router)
    assert engine.calls == [("b", -1)] * 3 + [("a", 1), ("b", -1)]
    values = [record.message for record in caplog.records]
    assert (
        sum(
            "skipping target a:1: Request for unknown model: 'a' is not found" in text
            for text in values
        )
        == 2
    )
    assert sum("a:1 serves again" in text for text in values) == 1


def test_without_targets_the_route_is_unknown(engine: ScriptedRouter) -> None:
    router, _ = routed(engine)
    engine.models.clear()
    with pytest.raises(InvalidArgument, match=r"^Request for unknown model: 'route' is not found$"):
        infer(router)


def test_a_target_that_is_not_ready_is_not_named_to_clients(
    engine: ScriptedRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Unavailable("Request for unknown model: 'a' version 1 is not at ready state")
    engine.models["a", 1] = engine.rejecting(refusal)

    def model_config(_name: str, _version: int) -> None:
        raise refusal

    monkeypatch.setattr(engine, "model_config", model_config)
    router, _ = routed(engine, targets=[A])
    with pytest.raises(
        Unavailable, match=r"^Request for unknown model: 'route' is not at ready state$"
    ):
        infer(router)


@pytest.mark.parametrize(
    "error",
    [QueueFull("full"), Unavailable("stopping"), ResourceExhausted("quota"), Cancelled("gone")],
)
def test_a_request_that_a_ready_target_rejects_is_not_retried(
    engine: ScriptedRouter, error: TritonError
) -> None:
    engine.models["a", 1] = engine.rejecting(error)
    router, _ = routed(engine, targets=[{**A, "weight": 1e9}, B])
    with pytest.raises(type(error)):
        infer(router)
    assert engine.calls == [("a", 1)]


@pytest.mark.parametrize("error", [InvalidArgument("unexpected input"), QueueFull("full")])
def test_a_rejection_by_a_canary_is_a_failure_hidden_from_clients(
    engine: ScriptedRouter, error: TritonError
) -> None:
    engine.models["a", 2] = engine.rejecting(error)
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        assert infer(router)[0].error is None
    assert route.run is not None
    assert not route.run.is_live
    assert "responses failed" in route.run.reason
    assert route.run.failure_budget.failures == route.run.failure_budget.open == 0


def test_a_request_that_both_reject_counts_as_client_error(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = engine.models["a", 1] = engine.rejecting(InvalidArgument("nonsense"))
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        with pytest.raises(InvalidArgument, match="nonsense"):
            infer(router)
    assert route.run is not None
    assert (route.run.is_live, route.run.canary.responses) == (True, 0)


def test_a_missing_canary_is_not_judged(engine: ScriptedRouter) -> None:
    del engine.models["a", 2]
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        infer(router)
    assert route.run is not None
    assert (route.run.is_live, route.run.canary.responses, route.run.failure_budget.open) == (
        True,
        0,
        0,
    )


def test_a_loading_canary_is_not_judged(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = engine.rejecting(Unavailable("it is being loaded", retry_after_s=1))
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        assert infer(router)[0].error is None
    assert route.run is not None
    assert (route.run.is_live, route.run.canary.responses, route.run.failure_budget.open) == (
        True,
        0,
        0,
    )
    assert {
        target_counters.target.label: target_counters.skipped
        for target_counters in route.counters.all()
    }["a:2"] > 0
    engine.models["a", 2] = engine.good
    infer(router)
    assert route.run.canary.responses == 1


def test_canary_requests_in_flight_count_as_failures(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = engine.hold
    router, route = routed(engine, canary={**CANARY, "max_failed_share": 0.1})
    for _ in range(99):
        infer(router)
    assert route.run is not None
    assert len(engine.held) == route.run.failure_budget.open
    assert len(engine.held) <= 0.1 * route.run.failure_budget.responses
    for request in engine.held:
        engine.bad(request)
    assert route.run.failure_budget.failures <= 0.1 * route.run.failure_budget.responses
    assert not route.run.is_live


def test_a_cancelled_request_is_not_counted(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = lambda request: request.respond(
        InferResponse.failed(request, Cancelled("by its client"))
    )
    router, route = routed(engine, canary=CANARY)
    for _ in range(50):
        infer(router)
    assert route.run is not None
    assert (route.run.is_live, route.run.failure_budget.open, route.run.canary.responses) == (
        True,
        0,
        0,
    )
    assert sum(target_counters.requests for target_counters in route.counters.all()) == len(
        [each for each in engine.calls if each[1] == 1]
    )


def test_a_promoted_canary_replaces_the_primary_with_its_weight(engine: ScriptedRouter) -> None:
    router, route = routed(engine, targets=[{**A, "weight": 3}, B], canary=CANARY)
    revision = route.revision
    assert route.promote()
    assert [(target.label, target.weight) for target in route.spec.targets] == [
        ("a:2", 3),
        ("b", 1),
    ]
    assert route.spec.canary is None
    assert route.revision > revision
    assert not route.promote()
    assert not route.roll_back()
    infer(router)
    assert engine.calls[0] in {("a", 2), ("b", -1)}


def test_late_responses_of_an_ended_canary_are_ignored(engine: ScriptedRouter) -> None:
    engine.models["a", 2] = engine.hold
    router, route = routed(engine, canary=CANARY)
    for _ in range(5):
        infer(router)
    assert engine.held
    route.roll_back()
    for request in engine.held:
        engine.bad(request)
    assert route.counters.rollbacks == 1


def test_sequences_stay_on_a_canary_that_is_rolled_back(engine: ScriptedRouter) -> None:
    router, route = routed(engine, canary=CANARY)
    infer(router)
    infer(router, sequence=SequenceInfo(9, start=True))
    assert engine.calls[-1] == ("a", 2)
    route.roll_back()
    infer(router, sequence=SequenceInfo(9))
    infer(router, sequence=SequenceInfo(9, end=True))
    assert engine.calls[-2:] == [("a", 2)] * 2
    infer(router, sequence=SequenceInfo(9, start=True))
    assert engine.calls[-1] == ("a", 1)


def test_an_unchanged_canary_continues_and_a_changed_one_restarts(engine: ScriptedRouter) -> None:
    router, route = routed(engine, canary=CANARY)
    run, spec = route.run, {"targets": [A, {**B, "weight": 0.5}], "canary": CANARY}
    router._table.put("route", spec, None)
    assert route.run is run
    router._table.put("route", {**spec, "canary": {**CANARY, "max_failed_share": 0.5}}, None)
    assert route.run is not run
    route.roll_back()
    router._table.put("route", {**spec, "canary": {**CANARY, "max_failed_share": 0.5}}, None)
    assert route.run is not None
    assert route.run.is_live


class FullSink(Sink):
    """A sink that is never ready."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.calls.append("put")

    def ready(self, request: InferRequest) -> bool:
        self.calls.append("ready")
        return False

    def when_ready(self, request: InferRequest, callback: Any) -> None:
        self.calls.append("when_ready")

    def cancelled(self, request: InferRequest) -> None:
        self.calls.append("cancelled")


def test_sink_calls_are_forwarded_to_the_client_sink(engine: ScriptedRouter) -> None:
    engine.models["a", 1] = engine.hold
    router, _ = routed(engine)
    sink = FullSink()
    router.infer(InferRequest("route", {}, sink))
    (request,) = engine.held
    assert not request.sink.ready(request)
    request.sink.when_ready(request, lambda: None)
    request.cancel()
    request.respond(InferResponse((), final=False))
    request.respond(InferResponse((), empty=True))
    assert sink.calls == ["ready", "when_ready", "cancelled", "put", "put"]
