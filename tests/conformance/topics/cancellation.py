"""Cancelled streams, deadlines and queue timeouts, with model, counters and next request."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, Stream, topic
from tests.conformance.inference import Inference, given, streamed

SHORT_S = 1.0
NOTICES = [["wait_for_cancel"], ["send_final", 1]]
ENDS = {
    "answers": [["send", 2], ["final"]],
    "answers nothing more": [["final"]],
    "says that it was cancelled": [["error_final", "CANCELLED"]],
    "says another error": [["error_final", "UNAVAILABLE"]],
}
HOPELESS = Inference("queue_reject", {"IN": given("INT32", 1, shape=(1, 1))})


def plan(model: str, actions: Any, **options: Any) -> Inference:
    return Inference(
        model, {"PLAN": given("BYTES", json.dumps(actions))}, **{"timeout_s": 10, **options}
    )


def outcome(model: str) -> Stream | Grpc:
    """Return the request for the outcome of the last plan, which also tests the next request."""
    request = plan(model, "tell")
    return streamed(request) if model == "sending_decoupled" else request.grpc()


def given_up(name: str, actions: list[Any], **options: Any) -> Exchange:
    """Return the exchange of a stream that is cancelled after its first response."""
    steps = (
        streamed(plan("sending_decoupled", actions), cancel_after=1),
        outcome("sending_decoupled"),
    )
    return Exchange(name, steps, **options)


def late(name: str, inference: Inference, **counted: int) -> Exchange:
    """Return the exchange of a request whose deadline passes."""
    hasty = inference.named(timeout_s=SHORT_S)
    sent = streamed(hasty) if inference.model == "sending_decoupled" else hasty.grpc()
    return Exchange(name, (sent, outcome(inference.model)), counted)


TOPIC = topic(
    "cancellation",
    "sending sending_decoupled queue_reject queue_override queue_ordered",
    [
        *(
            given_up(
                f"a stream is cancelled and its model {name}",
                [["thread"], ["send", 1], ["wait_for_cancel"], *end],
            )
            for name, end in ENDS.items()
        ),
        given_up(
            "a stream is cancelled while execute runs",
            [["send", 1], ["wait_for_cancel"], ["send", 2], ["final"]],
        ),
        *(
            late(
                f"a deadline passes and the decoupled model {name}",
                plan("sending_decoupled", [["thread"], ["wait_for_cancel"], *end]),
            )
            for name, end in ENDS.items()
        ),
        late("a deadline passes and the model answers", plan("sending", NOTICES), sending=2),
        late(
            "a deadline passes and the model returns",
            plan("sending", [["wait_for_cancel"], ["return", 1]]),
            sending=2,
        ),
        late(
            "a deadline passes and the model says that it was cancelled",
            plan("sending", [["wait_for_cancel"], ["error_final", "CANCELLED"]]),
        ),
        late(
            "a deadline passes and the model raises",
            plan("sending", [["wait_for_cancel"], ["raise"]]),
            sending=2,
        ),
        Exchange(
            "the model reports no cancellation",
            (
                plan("sending", [["error_final", "CANCELLED"]]).grpc(),
                plan("sending", [["error_final", "CANCELLED"]]).binary(),
            ),
        ),
        Exchange(
            "a deadline passes in a queue",
            (
                HOPELESS.named(model="queue_ordered", timeout_s=0.5).grpc(),
                streamed(*[HOPELESS.named(model="queue_ordered")] * 4),
            ),
            {"queue_ordered": 5},
        ),
        Exchange(
            "a long deadline changes nothing",
            (plan("sending", [["cancelled"], ["send_final", 1]]).grpc(), outcome("sending")),
            {"sending": 2},
        ),
        *(
            Exchange(f"rejected in a queue by {name}", (step,), {"queue_reject": 1})
            for name, step in {
                "http": HOPELESS.binary(),
                "json": HOPELESS.json(),
                "grpc": HOPELESS.grpc(),
                "stream": streamed(HOPELESS),
            }.items()
        ),
        Exchange(
            "rejected with its id",
            (HOPELESS.named(id="late").grpc(), HOPELESS.named(id="late").json()),
            {"queue_reject": 2},
        ),
        *(
            Exchange(f"a time of its own by {name}", (step,), {"queue_override": 1})
            for name, step in {
                "http": HOPELESS.named(
                    model="queue_override", parameters={"timeout": 50_000}
                ).binary(),
                "grpc": HOPELESS.named(
                    model="queue_override", parameters={"timeout": 50_000}
                ).grpc(),
            }.items()
        ),
        Exchange(
            "a time of its own where nothing heeds it",
            (
                plan("sending", [["send_final", 1]], parameters={"timeout": 1}).grpc(),
                plan("sending", [["send_final", 1]], parameters={"timeout": 1}).binary(),
            ),
            {"sending": 2},
        ),
    ],
)
