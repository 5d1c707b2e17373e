"""Response senders, decoupled models and coroutines."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Concurrent, Exchange, Grpc, Stream, get, topic
from tests.conformance.inference import Inference, both, given, streamed, text

EMPTY_FINAL = {"triton_enable_empty_final_response": True}
CODES = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)
SENDING: dict[str, list[Any]] = {
    "one with the final flag": [["send_final", 1]],
    "one, then the final flag": [["send", 1], ["final"]],
    "two": [["send", 1], ["send", 2], ["final"]],
    "the final flag alone": [["final"]],
    "after the final flag": [["send_final", 1], ["send", 2], ["final"], ["send_final", 3]],
    "nothing with no flags": [["nothing"], ["send_final", 1]],
    "unknown flags": [["flags", 2], ["flags", 7], ["bare_flags", 2], ["send_final", 1]],
    "negative flags": [["flags", -1], ["send_final", 1]],
    "no response": [["text"], ["send_final", 1]],
    "an error": [["error", "NOT_FOUND"], ["final"]],
    "an error with the final flag": [["error_final", "NOT_FOUND"]],
    "an empty response": [["empty"], ["final"]],
    "two outputs": [["both", 1], ["final"]],
    "the same sender": [["again"], ["send", 1], ["other_sender", 2]],
    "a second sender": [["send_final", 1], ["other_sender", 2]],
    "asks whether it is cancelled": [["cancelled"], ["send_final", 1]],
    "sends and returns": [["send_final", 1], ["return", 2]],
    "sends without the flag and returns": [["send", 1], ["return", 2]],
    "returns": [["return", 2]],
    "returns a list": [["send_final", 1], ["return_list"]],
    "raises before": [["raise"]],
    "raises between": [["send", 1], ["raise"]],
    "raises after": [["send_final", 1], ["raise"]],
    "from a thread": [["thread"], ["send", 1], ["final"]],
    "from a thread with the flag": [["thread"], ["send_final", 1]],
    "from a thread too often": [["thread"], ["send_final", 1], ["send", 2]],
}
UNANSWERED = {"the final flag alone", "the same sender"}
UNSOUND = {"sends without the flag and returns", "raises between", "raises after"}
"""Two answers to one request of a model that is not decoupled: the real Triton 2.51 corrupts its memory."""
STREAMED: dict[str, list[Any]] = {
    "many": [*(["send", value] for value in range(20)), ["final"]],
    "many from a thread": [["thread"], *(["send", value] for value in range(20)), ["final"]],
    "errors between": [["send", 1], ["error", "UNAVAILABLE"], ["send", 2], ["final"]],
    **{f"error {code}": [["error_final", code]] for code in CODES},
}
WORDS = (
    "sleeps", "gathers", "in_a_thread", "not_the_main_thread", "same_loop", "raises", "raises_in_task", "is_cancelled", "too_few", "no_list", "sends",
    "not_there",
)  # fmt: skip


def plan(model: str, actions: Any, **options: Any) -> Inference:
    return Inference(model, {"PLAN": given("BYTES", json.dumps(actions))}, timeout_s=10, **options)


def outcome(model: str) -> Stream | Grpc:
    request = plan(model, "tell", id="tell")
    return streamed(request) if model.endswith("decoupled") else request.grpc()


def sends(name: str, actions: list[Any], model: str = "sending") -> Exchange:
    """Return the exchange of a plan and of its outcome."""
    request = plan(model, actions, id="plan").named(
        timeout_s=3 if name in UNANSWERED and model == "sending" else 10
    )
    step = streamed(request) if model.endswith("decoupled") else request.binary()
    return Exchange(f"{model}: {name}", (step, outcome(model)))


def counted(name: str, inference: Inference, times: int = 1) -> Exchange:
    return Exchange(
        name,
        (streamed(*(inference.named(id=str(number)) for number in range(times))),),
        {inference.model: times},
    )


REPEAT = Inference("repeat", {"IN": given("INT32", 4, 2, 0, 1)})
NONE = Inference("repeat", {"IN": given("INT32")})
TOPIC = topic(
    "decoupled",
    "sending sending_decoupled repeat square coroutine coroutine_decoupled",
    [
        *(sends(name, actions) for name, actions in SENDING.items() if name not in UNSOUND),
        *(
            sends(name, actions, "sending_decoupled")
            for name, actions in {**SENDING, **STREAMED}.items()
        ),
        counted("repeat", REPEAT),
        counted("repeat with empty final response", REPEAT.named(parameters=EMPTY_FINAL)),
        counted("repeat nothing", NONE),
        counted("repeat nothing with empty final response", NONE.named(parameters=EMPTY_FINAL)),
        counted("repeat one output", REPEAT.named(outputs=("INDEX",))),
        counted("repeat three requests", REPEAT, 3),
        counted("square 3", Inference("square", {"IN": given("INT32", 3, shape=(1, 1))})),
        counted(
            "square 3 with empty final response",
            Inference("square", {"IN": given("INT32", 3, shape=(1, 1))}, parameters=EMPTY_FINAL),
        ),
        counted(
            "square 0 with empty final response",
            Inference("square", {"IN": given("INT32", 0, shape=(1, 1))}, parameters=EMPTY_FINAL),
        ),
        Exchange("unary on a decoupled model", (REPEAT.binary(), REPEAT.grpc())),
        Exchange("decoupled metadata", (get("/v2/models/repeat"), get("/v2/models/repeat/config"))),
        Exchange(
            "stream to a model that is not decoupled",
            (
                streamed(
                    plan("sending", [["return", 1]], id="a"),
                    plan("sending", [["raise"]], id="b"),
                    plan("sending", [["return", 3]], id="c"),
                ),
            ),
        ),
        Exchange(
            "cancelled stream",
            (
                streamed(
                    plan(
                        "sending_decoupled",
                        [["thread"], ["send", 1], ["wait_for_cancel"], ["send", 2], ["final"]],
                    ),
                    cancel_after=1,
                ),
                outcome("sending_decoupled"),
            ),
        ),
        Exchange(
            "a client that leaves",
            (
                plan("sending", [["wait_for_cancel"], ["return", 1]]).named(timeout_s=1.0).binary(),
                outcome("sending"),
            ),
        ),
        Exchange(
            "expired deadline",
            (
                plan("sending", [["wait_for_cancel"], ["return", 1]]).named(timeout_s=1.0).grpc(),
                outcome("sending"),
            ),
        ),
        *(
            both(f"coroutine {what}", Inference("coroutine", {"WHAT": text(what)}, timeout_s=10))
            for what in WORDS
        ),
        Exchange(
            "coroutines of a decoupled model run side by side",
            (
                streamed(
                    plan(
                        "coroutine_decoupled",
                        [["send", "waits"], ["wait", "a"], ["send_final", "went on"]],
                        id="first",
                    ),
                    plan("coroutine_decoupled", [["set", "a"], ["send_final", "set"]], id="second"),
                ),
            ),
        ),
        Exchange(
            "coroutine of a decoupled model raises",
            (
                streamed(
                    plan("coroutine_decoupled", [["send", "before"], ["raise"]], id="only").named(
                        timeout_s=3
                    )
                ),
            ),
        ),
        Exchange(
            "coroutine of a decoupled model raises after the end",
            (
                streamed(
                    plan("coroutine_decoupled", [["send_final", "before"], ["raise"]], id="only")
                ),
            ),
        ),
        Exchange(
            "two streams at once",
            (Concurrent((streamed(REPEAT.named(id="a")), streamed(REPEAT.named(id="b")))),),
            {"repeat": 2},
        ),
    ],
)
