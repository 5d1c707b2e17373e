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
    Sink,
    TritonError,
    Unavailable,
)
from tritonpy_traffic.route import Route
from tritonpy_traffic.router import TrafficRouter

from .scripted import Scripted, ask, request_of, router_of

A, B = {"model": "a", "version": 1}, {"model": "b"}
CANARY = {"model": "a", "version": 2, "steps": [{"share": 1, "requests": 1000}], "max_failed_share": 1}


def routed(engine: Scripted, **spec: Any) -> tuple[TrafficRouter, Route]:
    router = router_of(engine, routes={"route": {"targets": [A], **spec}})
    return router, router._table.get("route")


def test_answers_have_the_name_that_was_asked_for_and_the_version_that_answered(engine: Scripted) -> None:
    router, _ = routed(engine)
    (answer,) = ask(router)
    assert (answer.model_name, answer.model_version) == ("route", 1)
    assert engine.taken == [("a", 1)]


def test_what_the_engine_refuses_comes_back_as_it_was(engine: Scripted) -> None:
    error = InvalidArgument("an input is missing")
    engine.models["a", 1] = engine.refusing(error)
    router, _ = routed(engine)
    request, answers = request_of("route")
    sink = request.sink
    with pytest.raises(InvalidArgument) as caught:
        router.infer(request)
    assert caught.value is error
    assert (request.model_name, request.model_version, request.sink, answers) == ("route", -1, sink, [])


def test_a_bug_in_the_engine_comes_back_as_it_was_too(engine: Scripted) -> None:
    def broken(_request: InferRequest) -> None:
        raise ZeroDivisionError

    engine.models["a", 1] = broken
    router, _ = routed(engine, shadow=B)
    request, _ = request_of("route")
    with pytest.raises(ZeroDivisionError):
        router.infer(request)
    assert request.model_name == "route"
    assert router._table.get("route").shadowing.shown()["open"] == 0  # type: ignore[union-attr]


def test_a_target_that_is_not_there_is_skipped_and_said_once(
    engine: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    router, route = routed(engine, targets=[A, {**B, "weight": 0.000001}])
    del engine.models["a", 1]
    for _ in range(3):
        ask(router)
    assert [tally.skipped for tally in route.tallies.all()] == [3, 0]
    engine.models["a", 1] = engine.good
    ask(router)
    del engine.models["a", 1]
    ask(router)
    assert engine.taken == [("b", -1)] * 3 + [("a", 1), ("b", -1)]
    told = [record.message for record in caplog.records]
    assert sum("a:1 is skipped: Request for unknown model: 'a' is not found" in text for text in told) == 2
    assert sum("a:1 serves again" in text for text in told) == 1


def test_where_all_are_gone_the_route_is_unknown(engine: Scripted) -> None:
    router, _ = routed(engine)
    engine.models.clear()
    with pytest.raises(InvalidArgument, match=r"^Request for unknown model: 'route' is not found$"):
        ask(router)


def test_a_target_that_is_not_ready_is_not_named_to_clients(engine: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Unavailable("Request for unknown model: 'a' version 1 is not at ready state")
    engine.models["a", 1] = engine.refusing(refusal)

    def model_config(_name: str, _version: int) -> None:
        raise refusal

    monkeypatch.setattr(engine, "model_config", model_config)
    router, _ = routed(engine, targets=[A])
    with pytest.raises(Unavailable, match=r"^Request for unknown model: 'route' is not at ready state$"):
        ask(router)


@pytest.mark.parametrize(
    "error", [QueueFull("full"), Unavailable("stopping"), ResourceExhausted("quota"), Cancelled("gone")]
)
def test_what_a_serving_target_refuses_is_not_tried_elsewhere(engine: Scripted, error: TritonError) -> None:
    engine.models["a", 1] = engine.refusing(error)
    router, _ = routed(engine, targets=[{**A, "weight": 1e9}, B])
    with pytest.raises(type(error)):
        ask(router)
    assert engine.taken == [("a", 1)]


@pytest.mark.parametrize("error", [InvalidArgument("unexpected input"), QueueFull("full")])
def test_what_a_canary_refuses_and_the_primary_takes_is_a_failure_that_no_client_sees(
    engine: Scripted, error: TritonError
) -> None:
    engine.models["a", 2] = engine.refusing(error)
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        assert ask(router)[0].error is None
    assert route.run is not None
    assert not route.run.live
    assert "answers failed" in route.run.reason
    assert route.run.ledger.failures == route.run.ledger.open == 0


def test_what_both_refuse_is_the_client_s_mistake(engine: Scripted) -> None:
    engine.models["a", 2] = engine.models["a", 1] = engine.refusing(InvalidArgument("nonsense"))
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        with pytest.raises(InvalidArgument, match="nonsense"):
            ask(router)
    assert route.run is not None
    assert (route.run.live, route.run.canary.answers) == (True, 0)


def test_a_canary_that_is_not_there_is_neither_good_nor_bad(engine: Scripted) -> None:
    del engine.models["a", 2]
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        ask(router)
    assert route.run is not None
    assert (route.run.live, route.run.canary.answers, route.run.ledger.open) == (True, 0, 0)


def test_a_canary_that_is_being_loaded_is_neither_good_nor_bad(engine: Scripted) -> None:
    engine.models["a", 2] = engine.refusing(Unavailable("it is being loaded", retry_after_s=1))
    router, route = routed(engine, canary=CANARY)
    for _ in range(20):
        assert ask(router)[0].error is None
    assert route.run is not None
    assert (route.run.live, route.run.canary.answers, route.run.ledger.open) == (True, 0, 0)
    assert {tally.target.label: tally.skipped for tally in route.tallies.all()}["a:2"] > 0
    engine.models["a", 2] = engine.good
    ask(router)
    assert route.run.canary.answers == 1


def test_open_requests_of_a_canary_count_as_if_they_failed(engine: Scripted) -> None:
    engine.models["a", 2] = engine.hold
    router, route = routed(engine, canary={**CANARY, "max_failed_share": 0.1})
    for _ in range(99):
        ask(router)
    assert route.run is not None
    assert len(engine.held) == route.run.ledger.open
    assert len(engine.held) <= 0.1 * route.run.ledger.answers
    for request in engine.held:
        engine.bad(request)
    assert route.run.ledger.failures <= 0.1 * route.run.ledger.answers
    assert not route.run.live


def test_a_cancelled_request_is_no_answer(engine: Scripted) -> None:
    engine.models["a", 2] = lambda request: request.respond(InferResponse.failed(request, Cancelled("by its client")))
    router, route = routed(engine, canary=CANARY)
    for _ in range(50):
        ask(router)
    assert route.run is not None
    assert (route.run.live, route.run.ledger.open, route.run.canary.answers) == (True, 0, 0)
    assert sum(tally.requests for tally in route.tallies.all()) == len([each for each in engine.taken if each[1] == 1])


def test_a_promoted_canary_takes_the_place_and_the_weight_of_the_primary(engine: Scripted) -> None:
    router, route = routed(engine, targets=[{**A, "weight": 3}, B], canary=CANARY)
    revision = route.revision
    assert route.promote()
    assert [(target.label, target.weight) for target in route.spec.targets] == [("a:2", 3), ("b", 1)]
    assert route.spec.canary is None
    assert route.revision > revision
    assert not route.promote()
    assert not route.roll_back()
    ask(router)
    assert engine.taken[0] in {("a", 2), ("b", -1)}


def test_answers_of_a_canary_that_is_over_do_no_harm(engine: Scripted) -> None:
    engine.models["a", 2] = engine.hold
    router, route = routed(engine, canary=CANARY)
    for _ in range(5):
        ask(router)
    assert engine.held
    route.roll_back()
    for request in engine.held:
        engine.bad(request)
    assert route.tallies.rollbacks == 1


def test_sequences_go_on_where_they_are_while_the_canary_rolls_back(engine: Scripted) -> None:
    router, route = routed(engine, canary=CANARY)
    ask(router)
    ask(router, sequence=SequenceInfo(9, start=True))
    assert engine.taken[-1] == ("a", 2)
    route.roll_back()
    ask(router, sequence=SequenceInfo(9))
    ask(router, sequence=SequenceInfo(9, end=True))
    assert engine.taken[-2:] == [("a", 2)] * 2
    ask(router, sequence=SequenceInfo(9, start=True))
    assert engine.taken[-1] == ("a", 1)


def test_a_canary_that_did_not_change_goes_on_and_another_one_begins(engine: Scripted) -> None:
    router, route = routed(engine, canary=CANARY)
    run, spec = route.run, {"targets": [A, {**B, "weight": 0.5}], "canary": CANARY}
    router._table.put("route", spec, None)
    assert route.run is run
    router._table.put("route", {**spec, "canary": {**CANARY, "max_failed_share": 0.5}}, None)
    assert route.run is not run
    route.roll_back()
    router._table.put("route", {**spec, "canary": {**CANARY, "max_failed_share": 0.5}}, None)
    assert route.run is not None
    assert route.run.live


class Full(Sink):
    """A consumer that has room when somebody says so."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.heard.append("put")

    def ready(self, request: InferRequest) -> bool:
        self.heard.append("ready")
        return False

    def when_ready(self, request: InferRequest, callback: Any) -> None:
        self.heard.append("when_ready")

    def cancelled(self, request: InferRequest) -> None:
        self.heard.append("cancelled")


def test_a_consumer_is_asked_and_told_through_the_route(engine: Scripted) -> None:
    engine.models["a", 1] = engine.hold
    router, _ = routed(engine)
    sink = Full()
    router.infer(InferRequest("route", {}, sink))
    (request,) = engine.held
    assert not request.sink.ready(request)
    request.sink.when_ready(request, lambda: None)
    request.cancel()
    request.respond(InferResponse((), final=False))
    request.respond(InferResponse((), empty=True))
    assert sink.heard == ["ready", "when_ready", "cancelled", "put", "put"]
