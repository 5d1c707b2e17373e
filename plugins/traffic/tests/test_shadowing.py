from __future__ import annotations

import threading
from typing import Any

import pytest

from tritonpy import Cancelled, InferRequest, InferResponse, SequenceInfo, Tensor, TritonError
from tritonpy.testing import Witness
from tritonpy_traffic.router import TrafficRouter
from tritonpy_traffic.shadowing import Shadowing

from .scripted import Scripted, ask, numbers, request_of, router_of

PATIENCE_S = 30


def shadowed(engine: Scripted, **shadow: Any) -> tuple[TrafficRouter, Shadowing]:
    spec = {"targets": [{"model": "a", "version": 1}], "shadow": {"model": "b", "version": 2, **shadow}}
    router = router_of(engine, routes={"route": spec})
    shadowing = router._table.get("route").shadowing
    assert shadowing is not None
    return router, shadowing


def settled(router: TrafficRouter, shadowing: Shadowing) -> dict[str, int]:
    """Return what became of the copies once the thread has done all that there is."""
    router.close()
    return {outcome: count for outcome, count in shadowing.outcomes.items() if count}


def test_a_copy_has_the_same_tensors_and_no_effect_on_the_client(engine: Scripted) -> None:
    copies: list[InferRequest] = []
    done = threading.Event()

    def shadow(request: InferRequest) -> None:
        copies.append(request)
        request.respond(InferResponse([numbers(8)], "b", 2))
        done.set()

    engine.models["b", 2] = shadow
    router, shadowing = shadowed(engine)
    request, answers = request_of("route", id="an id", parameters={"p": 1}, priority=2)
    router.infer(request)
    assert [answer.outputs[0].numpy().tolist() for answer in answers] == [[7]]
    assert done.wait(PATIENCE_S)
    (copy,) = copies
    assert copy.inputs["IN"] is request.inputs["IN"]
    assert copy.inputs is not request.inputs
    assert (copy.id, copy.parameters, copy.priority) == ("an id", {"p": 1}, 2)
    assert settled(router, shadowing) == {"different": 1}
    assert shadowing.last_difference == "output 'OUT': 1 of 1 elements differ"


def test_it_sets_off_when_the_client_has_its_answer(engine: Scripted) -> None:
    engine.models["a", 1] = engine.hold
    router, shadowing = shadowed(engine)
    ask(router)
    assert shadowing.shown()["open"] == 1
    assert engine.taken == [("a", 1)]
    engine.good(engine.held[0])
    assert settled(router, shadowing) == {"same": 1}
    assert engine.taken == [("a", 1), ("b", 2)]


def test_no_client_s_quota_pays_for_it(engine: Scripted) -> None:
    parents: list[InferRequest | None] = []
    engine.models["b", 2] = lambda request: (parents.append(request.parent), engine.good(request))[1]
    router, shadowing = shadowed(engine)
    ask(router, principal="somebody")
    assert settled(router, shadowing) == {"same": 1}
    assert parents[0] is not None
    assert parents[0].principal is None


@pytest.mark.parametrize("limit", [{"max_open": 3}, {"max_bytes": 12}])
def test_beyond_what_may_be_open_copies_are_dropped(engine: Scripted, limit: dict[str, int]) -> None:
    engine.models["b", 2] = engine.hold
    router, shadowing = shadowed(engine, **limit)
    for _ in range(10):
        ask(router)
    assert shadowing.outcomes["dropped"] == 7
    assert shadowing.shown()["open"] == 3
    router.close()


def test_a_share_is_copied(engine: Scripted) -> None:
    router, shadowing = shadowed(engine, share=0.25, max_open=1000)
    for _ in range(200):
        ask(router)
    assert abs(settled(router, shadowing)["same"] - 50) <= 3


def test_a_target_that_refuses_copies_fails_alone(engine: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    engine.models["b", 2] = engine.refusing(TritonError("not today"))
    router, shadowing = shadowed(engine)
    for _ in range(5):
        assert ask(router)[0].error is None
    assert settled(router, shadowing) == {"failed": 5}
    assert caplog.text.count("it refuses copies: not today") == 1


def failing(text: str) -> Any:
    return lambda request: request.respond(InferResponse.failed(request, TritonError(text)))


def test_a_target_that_answers_with_errors_fails(engine: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    engine.models["b", 2] = failing("broken")
    router, shadowing = shadowed(engine)
    for _ in range(5):
        assert ask(router)[0].error is None
    assert settled(router, shadowing) == {"failed": 5}
    assert caplog.text.count("it fails: broken") == 1
    shown = shadowing.shown()
    assert (shown["last_failure"], shown["last_difference"], shown["open"]) == ("it fails: broken", "", 0)
    assert shown["p50_ms"] is None  # errors are quick: they say nothing about the latency of answers


def test_a_target_that_fails_where_the_primary_does_is_the_same(engine: Scripted) -> None:
    engine.models["a", 1], engine.models["b", 2] = failing("broken"), failing("broken in other words")
    router, shadowing = shadowed(engine)
    ask(router)
    assert settled(router, shadowing) == {"same": 1}


def test_an_answer_where_the_primary_fails_is_different(engine: Scripted) -> None:
    engine.models["a", 1] = failing("broken")
    router, shadowing = shadowed(engine)
    ask(router)
    assert settled(router, shadowing) == {"different": 1}


def test_a_bug_in_the_target_s_way_does_not_keep_the_room_of_copies(
    engine: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_request: InferRequest) -> None:
        raise RuntimeError("a bug")

    engine.models["b", 2] = broken
    router, shadowing = shadowed(engine)
    assert ask(router)[0].error is None
    assert settled(router, shadowing) == {"failed": 1}
    assert shadowing.shown()["open"] == 0
    assert shadowing.last_failure == "RuntimeError: a bug"
    assert "a bug" in caplog.text


def test_answers_that_cannot_be_read_do_not_keep_the_room_of_copies(
    engine: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable = Tensor("OUT", "FP32", (2,), b"too short")
    engine.models["b", 2] = lambda request: request.respond(InferResponse([unreadable]))
    engine.models["a", 1] = lambda request: request.respond(InferResponse([numbers(1, 2)]))
    router, shadowing = shadowed(engine)
    ask(router)
    assert settled(router, shadowing) == {"uncompared": 1}
    assert shadowing.shown()["open"] == 0
    assert "a task in the background failed" in caplog.text


def test_what_the_primary_does_not_take_is_not_copied(engine: Scripted) -> None:
    engine.models["a", 1] = engine.refusing(TritonError("no"))
    router, shadowing = shadowed(engine)
    with pytest.raises(TritonError):
        ask(router)
    assert shadowing.shown()["open"] == 0
    assert settled(router, shadowing) == {}


def test_what_cannot_be_compared_is_counted_as_that(engine: Scripted) -> None:
    router, shadowing = shadowed(engine)
    ask(router, sequence=SequenceInfo(1))
    ask(router, uses_regions=True)
    engine.models["a", 1] = lambda request: request.respond(InferResponse.failed(request, Cancelled("gone")))
    ask(router)
    assert settled(router, shadowing) == {"uncompared": 3}
    assert ("b", 2) not in engine.taken


def test_many_threads_may_ask_at_once(engine: Scripted) -> None:
    router, shadowing = shadowed(engine, max_open=100_000)
    threads = [threading.Thread(target=lambda: [ask(router) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert settled(router, shadowing) == {"same": 800}
    assert shadowing.shown()["open"] == 0


def test_a_decoupled_answer_is_compared_as_a_whole(engine: Scripted) -> None:
    def stream(*values: float) -> Any:
        def answer(request: InferRequest) -> None:
            for value in values:
                request.respond(InferResponse([numbers(value)], "m", 1, final=False))
            request.respond(InferResponse((), "m", 1, empty=True))

        return answer

    engine.models["a", 1], engine.models["b", 2] = stream(1, 2), stream(1, 3)
    router, shadowing = shadowed(engine)
    witness = Witness()
    request = InferRequest("route", {}, witness.sink, accepts_decoupled=True)
    router.infer(request)
    assert len(witness.wait(request)[0]) == 3
    assert settled(router, shadowing) == {"different": 1}
