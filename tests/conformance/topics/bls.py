"""Models that call models."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, load, topic, unload
from tests.conformance.inference import Inference, both, given, streamed

ADDED = {"INPUT0": ["FP32", [1, 2, 3, 4]], "INPUT1": ["FP32", [10, 20, 30, 40]]}
START, END = 1, 2
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


def call(
    model: str, inputs: dict[str, Any], outputs: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    return {"model": model, "inputs": inputs, "outputs": list(outputs), **more}


def adding(outputs: tuple[str, ...] = ("OUTPUT0", "OUTPUT1"), **more: Any) -> dict[str, Any]:
    return call("add_sub", ADDED, outputs, **more)


def echoing(**more: Any) -> dict[str, Any]:
    return call("echo_request", {"IN": ["INT32", [7]]}, ("REQUEST",), **more)


def repeating(*values: int, **more: Any) -> dict[str, Any]:
    return call("repeat", {"IN": ["INT32", list(values)]}, ("OUT",), **more)


def troubled(what: str, **more: Any) -> dict[str, Any]:
    return call("trouble", {"WHAT": ["BYTES", [what]]}, ("OUT",), **more)


def adding_up(value: int, **more: Any) -> dict[str, Any]:
    """Return the call of one request of a sequence."""
    return call("sequenced_alone", {"IN": ["INT32", [value]]}, ("SUM",), **more)


def sequence(**named: Any) -> list[dict[str, Any]]:
    """Return the calls of a whole sequence, and one request after its end."""
    return [
        adding_up(value, flags=flags, **named)
        for value, flags in ((1, START), (2, 0), (3, END), (4, 0))
    ]


def joined(model: str, **more: Any) -> dict[str, Any]:
    return call(model, {"IN": ["INT32", [5, 6]]}, ("OUT",), **more)


def deeper(*plan: dict[str, Any]) -> dict[str, Any]:
    """Return the call of the next deeper model with a plan for it."""
    inner = [
        {**one, "model": "bls_deepest"} if one["model"] == "bls_deeper" else one for one in plan
    ]
    return call("bls_deeper", {"PLAN": ["BYTES", [json.dumps(inner)]]}, ("RESULT",))


PLANS: dict[str, list[Any]] = {
    "one call": [adding()],
    "two calls": [adding(), adding()],
    "one output": [adding(("OUTPUT1",))],
    "no outputs requested": [adding(())],
    "unknown output": [adding(("NOT_THERE",))],
    "empty output name": [adding(("",))],
    "the same output twice": [adding(("OUTPUT0", "OUTPUT0"))],
    "a version": [adding(model_version=1)],
    "the latest version": [adding(model_version=-1)],
    "an unknown version": [adding(model_version=5)],
    "version zero": [adding(model_version=0)],
    "unknown model": [call("not_there", {})],
    "model without a name": [call("", {})],
    "model that is not loaded": [call("starting", {"IN": ["INT32", [1]]}, ("OUT",))],
    "missing input": [call("add_sub", {"INPUT0": ["FP32", [1, 2, 3, 4]]}, ("OUTPUT0",))],
    "unknown input": [call("add_sub", {**ADDED, "MORE": ["FP32", [1]]}, ("OUTPUT0",))],
    "wrong shape": [call("add_sub", {**ADDED, "INPUT1": ["FP32", [1, 2]]}, ("OUTPUT0",))],
    "wrong datatype": [call("add_sub", {**ADDED, "INPUT1": ["INT32", [1, 2, 3, 4]]}, ("OUTPUT0",))],
    "preferred memory": [adding(memory=True)],
    "plain": [echoing()],
    "request id": [echoing(request_id="an id")],
    "correlation id": [echoing(correlation_id=42)],
    "correlation id as text": [echoing(correlation_id="a name")],
    "correlation id as fraction": [echoing(correlation_id=0.5)],
    "correlation id negative": [echoing(correlation_id=-1)],
    "flags": [
        echoing(flags=1, correlation_id=5),
        echoing(flags=2, correlation_id=5),
        echoing(flags=3, correlation_id=5),
    ],
    "set flags": [echoing(set_flags=3, correlation_id=5)],
    "timeout": [echoing(timeout=5000000)],
    "timeout negative": [echoing(timeout=-1)],
    "parameters": [echoing(parameters={"text": 'ö"', "number": 7, "yes": True, "no": False})],
    "no parameters": [echoing(parameters={})],
    "parameters of a fraction": [echoing(parameters={"x": 0.5})],
    "parameters of a list": [echoing(parameters={"x": [1]})],
    "parameters of none": [echoing(parameters={"x": None})],
    "parameters that are no dictionary": [echoing(parameters=[1])],
    "parameters with reserved names": [
        echoing(parameters={"sequence_id": 7, "priority": 1, "triton_x": 1})
    ],
    "properties": [
        echoing(show=True),
        echoing(
            show=True, request_id="a", correlation_id="b", flags=1, timeout=7, parameters={"k": 1}
        ),
    ],
    "an exception of the other": [troubled("raises")],
    "a wrong answer of the other": [troubled("no_list:tuple")],
    **{f"error {code} of the other": [troubled(f"error:{code}")] for code in CODES},
    "outputs that are missing": [
        call("trouble", {"WHAT": ["BYTES", ["missing_output"]]}, ("OUT", "MORE"))
    ],
    "decoupled": [repeating(1, 2, 3, decoupled=True)],
    "decoupled with nothing": [repeating(decoupled=True)],
    "decoupled, twice over": [repeating(1, 2, decoupled=True, again=True)],
    "decoupled, not asked for": [repeating(1, 2, 3)],
    "decoupled false": [repeating(1, decoupled=False)],
    "decoupled of one that is not": [adding(decoupled=True)],
    "decoupled unknown model": [call("not_there", {}, decoupled=True)],
    "two deep": [deeper(adding())],
    "three deep": [deeper(deeper(adding(), echoing(request_id="deep")))],
    "three deep with an error": [deeper(deeper(troubled("raises")))],
    "a sequence": sequence(correlation_id=7),
    "a sequence without an id": sequence(),
    "an ensemble": [call("joined_line", {"A": ADDED["INPUT0"], "B": ADDED["INPUT1"]}, ("OUT",))]
    * 2,
    "an ensemble whose member fails": [
        call("joined_trouble", {"WHAT": ["BYTES", ["raises"]]}, ("OUT",))
    ],
    "an ensemble, decoupled": [joined("joined_repeat", decoupled=True)],
    "an ensemble, decoupled and not asked for": [joined("joined_repeat")],
    "waits too long in a queue": [
        call("queue_override", {"IN": ["INT32", [[1]]]}, ("TOGETHER",), timeout=50_000)
    ],
    "waits in a queue": [call("queue_override", {"IN": ["INT32", [[1]]]}, ("TOGETHER",))],
    "three deep and decoupled": [deeper(deeper(repeating(5, 6, decoupled=True)))],
}
HANGING: dict[str, list[Any]] = {
    "decoupled error": [
        call(
            "sending_decoupled",
            {"PLAN": ["BYTES", ['[["send", 1], ["error_final", "NOT_FOUND"]]']]},
            ("OUT",),
            decoupled=True,
        )
    ],
    "decoupled error in the middle": [
        call(
            "sending_decoupled",
            {"PLAN": ["BYTES", ['[["send", 1], ["error", "NOT_FOUND"], ["send", 2], ["final"]]']]},
            ("OUT",),
            decoupled=True,
        )
    ],
}
FLOATS = {"INPUT0": ["float32", [1, 2, 3, 4]], "INPUT1": ["float32", [10, 20, 30, 40]]}
AT_ONCE: dict[str, list[Any]] = {
    "one": [call("add_sub", FLOATS, ("OUTPUT0",))],
    "many": [
        call("add_sub", {**FLOATS, "INPUT0": ["float32", [number] * 4]}, ("OUTPUT0",))
        for number in range(12)
    ],
    "unknown model": [call("not_there", {}), call("add_sub", FLOATS, ("OUTPUT1",))],
    "decoupled": [call("repeat", {"IN": ["int32", [1, 2]]}, ("OUT",), decoupled=True)] * 3,
    "decoupled, not asked for": [call("repeat", {"IN": ["int32", [1, 2]]}, ("OUT",))],
    "blocking in a coroutine": [call("add_sub", FLOATS, ("OUTPUT0",), blocking=True)],
}


def planned(model: str, plan: list[Any], **options: Any) -> Inference:
    return Inference(model, {"PLAN": given("BYTES", json.dumps(plan))}, timeout_s=10, **options)


FORWARDED = Inference(
    "bls_forwarding",
    {"INPUT0": given("FP32", 1, 2, 3, 4), "INPUT1": given("FP32", 1, 1, 1, 1)},
    id="passed on",
)
TOPIC = topic(
    "bls",
    "add_sub echo_request repeat trouble sending_decoupled bls bls_deeper bls_deepest bls_async bls_threads bls_decoupled bls_forwarding bls_hanging "
    "sequenced_alone pausing joined_line joined_trouble joined_repeat queue_override",
    [
        *(
            Exchange(f"calls: {name}", (planned("bls", plan).grpc(),), {"bls": 1})
            for name, plan in PLANS.items()
        ),
        *(
            Exchange(
                f"calls at once: {name}", (planned("bls_async", plan).grpc(),), {"bls_async": 1}
            )
            for name, plan in AT_ONCE.items()
        ),
        Exchange(
            "counted at the called model",
            (planned("bls", [adding(), adding()]).grpc(),),
            {"bls": 1, "add_sub": 2},
        ),
        Exchange(
            "a failure is counted at the called model",
            (planned("bls", [troubled("raises")]).grpc(),),
            {"bls": 1, "trouble": 1},
        ),
        Exchange(
            "from threads",
            (Inference("bls_threads", {"COUNT": given("INT32", 40)}).grpc(),),
            {"add_sub": 40},
        ),
        Exchange(
            "decoupled through decoupled",
            (streamed(Inference("bls_decoupled", {"IN": given("INT32", 1, 2, 3)}, id="only")),),
        ),
        *both("passing on", FORWARDED),
        *(
            Exchange(f"calls: {name}", (planned("bls_hanging", plan).named(timeout_s=4).grpc(),))
            for name, plan in HANGING.items()
        ),
        Exchange("in initialize", (load("bls_at_start"), unload("bls_at_start"))),
    ],
)
