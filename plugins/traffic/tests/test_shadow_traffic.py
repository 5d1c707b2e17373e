from __future__ import annotations

import threading
from typing import Any

import pytest

from tritonpy import Cancelled, InferRequest, InferResponse, SequenceInfo, Tensor, TritonError
from tritonpy_testing import RecordingSink
from tritonpy_traffic.router import TrafficRouter
from tritonpy_traffic.shadow_traffic import ShadowTraffic

from .scripted_router import ScriptedRouter, infer, numbers, request_of, router_of

WAIT_S = 30


def shadowed(engine: ScriptedRouter, **shadow: Any) -> tuple[TrafficRouter, ShadowTraffic]:
    spec = {
        "targets": [{"model": "a", "version": 1}],
        "shadow": {"model": "b", "version": 2, **shadow},
    }
    router = router_of(engine, routes={"route": spec})
    shadow_traffic = router._table.get("route").shadow_traffic
    assert shadow_traffic is not None
    return router, shadow_traffic


def outcomes_after_close(router: TrafficRouter, shadow_traffic: ShadowTraffic) -> dict[str, int]:
    """Return the outcomes of the copies after the thread has finished."""
    router.close()
    return {outcome: count for outcome, count in shadow_traffic.outcomes.items() if count}


def test_a_copy_has_the_same_tensors_and_no_effect_on_the_client(engine: ScriptedRouter) -> None:
    copies: list[InferRequest] = []
    done = threading.Event()

    def shadow(request: InferRequest) -> None:
        copies.append(request)
        request.respond(InferResponse([numbers(8)], "b", 2))
        done.set()

    engine.models["b", 2] = shadow
    router, shadow_traffic = shadowed(engine)
    request, responses = request_of("route", id="an id", parameters={"p": 1}, priority=2)
    router.infer(request)
    assert [response.outputs[0].numpy().tolist() for response in responses] == [[7]]
    assert done.wait(WAIT_S)
    (copy,) = copies
    assert copy.inputs["IN"] is request.inputs["IN"]
    assert copy.inputs is not request.inputs
    assert (copy.id, copy.parameters, copy.priority) == ("an id", {"p": 1}, 2)
    assert outcomes_after_close(router, shadow_traffic) == {"different": 1}
    assert shadow_traffic.last_difference == "output 'OUT': 1 of 1 elements differ"


def test_a_copy_is_sent_after_the_client_s_response(engine: ScriptedRouter) -> None:
    engine.models["a", 1] = engine.hold
    router, shadow_traffic = shadowed(engine)
    infer(router)
    assert shadow_traffic.to_json()["open"] == 1
    assert engine.calls == [("a", 1)]
    engine.good(engine.held[0])
    assert outcomes_after_close(router, shadow_traffic) == {"same": 1}
    assert engine.calls == [("a", 1), ("b", 2)]


def test_a_copy_is_not_charged_to_a_client_s_quota(engine: ScriptedRouter) -> None:
    parents: list[InferRequest | None] = []
    engine.models["b", 2] = lambda request: (parents.append(request.parent), engine.good(request))[
        1
    ]
    router, shadow_traffic = shadowed(engine)
    infer(router, principal="alice")
    assert outcomes_after_close(router, shadow_traffic) == {"same": 1}
    assert parents[0] is not None
    assert parents[0].principal is None


@pytest.mark.parametrize("limit", [{"max_open": 3}, {"max_bytes": 12}])
def test_copies_above_the_limit_are_dropped(engine: ScriptedRouter, limit: dict[str, int]) -> None:
    engine.models["b", 2] = engine.hold
    router, shadow_traffic = shadowed(engine, **limit)
    for _ in range(10):
        infer(router)
    assert shadow_traffic.outcomes["dropped"] == 7
    assert shadow_traffic.to_json()["open"] == 3
    router.close()


def test_the_configured_share_is_copied(engine: ScriptedRouter) -> None:
    router, shadow_traffic = shadowed(engine, share=0.25, max_open=1000)
    for _ in range(200):
        infer(router)
    assert abs(outcomes_after_close(router, shadow_traffic)["same"] - 50) <= 3


def test_a_target_that_rejects_copies_does_not_affect_clients(
    engine: ScriptedRouter, caplog: pytest.LogCaptureFixture
) -> None:
    engine.models["b", 2] = engine.rejecting(TritonError("not today"))
    router, shadow_traffic = shadowed(engine)
    for _ in range(5):
        assert infer(router)[0].error is None
    assert outcomes_after_close(router, shadow_traffic) == {"failed": 5}
    assert caplog.text.count("it rejects copies: not today") == 1


def failing(text: str) -> Any:
    return lambda request: request.respond(InferResponse.failed(request, TritonError(text)))


def test_a_target_that_returns_errors_fails(
    engine: ScriptedRouter, caplog: pytest.LogCaptureFixture
) -> None:
    engine.models["b", 2] = failing("broken")
    router, shadow_traffic = shadowed(engine)
    for _ in range(5):
        assert infer(router)[0].error is None
    assert outcomes_after_close(router, shadow_traffic) == {"failed": 5}
    assert caplog.text.count("it fails: broken") == 1
    summary = shadow_traffic.to_json()
    assert (summary["last_failure"], summary["last_difference"], summary["open"]) == (
        "it fails: broken",
        "",
        0,
    )
    assert summary["p50_ms"] is None  # errors do not count in the latency


def test_errors_of_both_targets_are_the_same(engine: ScriptedRouter) -> None:
    engine.models["a", 1], engine.models["b", 2] = (
        failing("broken"),
        failing("broken in other words"),
    )
    router, shadow_traffic = shadowed(engine)
    infer(router)
    assert outcomes_after_close(router, shadow_traffic) == {"same": 1}


def test_a_response_where_the_primary_fails_is_different(engine: ScriptedRouter) -> None:
    engine.models["a", 1] = failing("broken")
    router, shadow_traffic = shadowed(engine)
    infer(router)
    assert outcomes_after_close(router, shadow_traffic) == {"different": 1}


def test_an_unexpected_error_releases_the_copy(
    engine: ScriptedRouter, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_request: InferRequest) -> None:
        raise RuntimeError("a bug")

    engine.models["b", 2] = broken
    router, shadow_traffic = shadowed(engine)
    assert infer(router)[0].error is None
    assert outcomes_after_close(router, shadow_traffic) == {"failed": 1}
    assert shadow_traffic.to_json()["open"] == 0
    assert shadow_traffic.last_failure == "RuntimeError: a bug"
    assert "a bug" in caplog.text


def test_unreadable_responses_release_the_copy(
    engine: ScriptedRouter, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable = Tensor("OUT", "FP32", (2,), b"too short")
    engine.models["b", 2] = lambda request: request.respond(InferResponse([unreadable]))
    engine.models["a", 1] = lambda request: request.respond(InferResponse([numbers(1, 2)]))
    router, shadow_traffic = shadowed(engine)
    infer(router)
    assert outcomes_after_close(router, shadow_traffic) == {"uncompared": 1}
    assert shadow_traffic.to_json()["open"] == 0
    assert "a background task failed" in caplog.text


def test_a_rejected_request_is_not_copied(engine: ScriptedRouter) -> None:
    engine.models["a", 1] = engine.rejecting(TritonError("no"))
    router, shadow_traffic = shadowed(engine)
    with pytest.raises(TritonError):
        infer(router)
    assert shadow_traffic.to_json()["open"] == 0
    assert outcomes_after_close(router, shadow_traffic) == {}


def test_requests_that_cannot_be_compared_are_counted(engine: ScriptedRouter) -> None:
    router, shadow_traffic = shadowed(engine)
    infer(router, sequence=SequenceInfo(1))
    infer(router, uses_regions=True)
    engine.models["a", 1] = lambda request: request.respond(
        InferResponse.failed(request, Cancelled("gone"))
    )
    infer(router)
    assert outcomes_after_close(router, shadow_traffic) == {"uncompared": 3}
    assert ("b", 2) not in engine.calls


def test_concurrent_requests_are_copied(engine: ScriptedRouter) -> None:
    router, shadow_traffic = shadowed(engine, max_open=100_000)
    threads = [
        threading.Thread(target=lambda: [infer(router) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes_after_close(router, shadow_traffic) == {"same": 800}
    assert shadow_traffic.to_json()["open"] == 0


def test_decoupled_responses_are_compared_as_a_whole(engine: ScriptedRouter) -> None:
    def stream(*values: float) -> Any:
        def response(request: InferRequest) -> None:
            for value in values:
                request.respond(InferResponse([numbers(value)], "m", 1, final=False))
            request.respond(InferResponse((), "m", 1, empty=True))

        return response

    engine.models["a", 1], engine.models["b", 2] = stream(1, 2), stream(1, 3)
    router, shadow_traffic = shadowed(engine)
    recorder = RecordingSink()
    request = InferRequest("route", {}, recorder.sink, accepts_decoupled=True)
    router.infer(request)
    assert len(recorder.wait(request)[0]) == 3
    assert outcomes_after_close(router, shadow_traffic) == {"different": 1}
