"""Backends in C: the same library runs in both servers."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import (
    Concurrent,
    Exchange,
    Families,
    IndexEntry,
    get,
    load,
    topic,
    unload,
)
from tests.conformance.inference import Inference, both, given, streamed

GOOD, FAIL_EXECUTION, RELEASE_FIRST, ASYNCHRONOUS = 0, 7, 14, 17


def identity(rows: int, columns: int, **more: Any) -> Inference:
    """Return a request of numbers and texts."""
    numbers = [number / 8 for number in range(rows * columns)]
    texts = [f"text {number}" * number for number in range(rows * 2)]
    inputs = {
        "INPUT0": given("FP32", *numbers, shape=(rows, columns)),
        "INPUT1": given("BYTES", *texts, shape=(rows, 2)),
    }
    return Inference("c_identity", inputs, **more)


def number(model: str, value: int, shape: tuple[int, ...] = (1,), **more: Any) -> Inference:
    """Return a request with the input IN."""
    return Inference(model, {"IN": given("INT32", value, shape=shape)}, **more)


def step(value: int, start: bool = False, end: bool = False) -> Inference:
    """Return a request of one sequence."""
    flags = {"sequence_id": 5, "sequence_start": start, "sequence_end": end}
    return number("c_total", value, (1, 1), parameters=flags)


TOPIC = topic(
    "backends in C",
    "c_identity c_repeat c_total c_complete c_rules c_caller double "
    "c_describe c_describe_profiles c_describe_model c_describe_count c_describe_default",
    [
        *(
            exchange
            for rows, columns in ((1, 1), (4, 3), (2, 0), (3, 5000))
            for exchange in both(f"identity: {rows} x {columns}", identity(rows, columns))
        ),
        *both("identity: an id and one output", identity(1, 2, id="x", outputs=("OUTPUT1",))),
        *both("identity: too many rows", identity(5, 2)),
        Exchange(
            "identity: together",
            (Concurrent(tuple(identity(1 + each % 4, 2).grpc() for each in range(8))),),
        ),
        *(
            Exchange(f"repeat: {count}", (streamed(number("c_repeat", count)),))
            for count in (0, 1, 5, 100)
        ),
        Exchange(
            "repeat: the empty final response",
            (
                streamed(
                    number("c_repeat", 2, parameters={"triton_enable_empty_final_response": True})
                ),
            ),
        ),
        Exchange("repeat: over HTTP", (number("c_repeat", 1).binary(),)),
        Exchange(
            "total: a sequence",
            tuple(
                step(value, start=place == 0, end=place == 4).binary()
                for place, value in enumerate((3, 4, -1, 10, 2))
            ),
        ),
        Exchange("total: no start", (step(1).binary(),)),
        Exchange("complete: metadata", (get("/v2/models/c_complete"),)),
        *(
            exchange
            for name in ("", "_profiles", "_model")
            for exchange in both(f"describe{name}", number(f"c_describe{name}", 1))
        ),
        *(
            Exchange(
                f"describe{name}: configuration", (get(f"/v2/models/c_describe{name}/config"),)
            )
            for name in ("_model", "_count", "_default")
        ),
        *both("complete: an inference", number("c_complete", 1, (1, 1)), counted=False),
        Exchange("complete: refused", (load("refused"), IndexEntry("refused"), unload("refused"))),
        *(
            exchange
            for name, mode in (
                ("good", GOOD),
                ("a failing execution", FAIL_EXECUTION),
                ("released first", RELEASE_FIRST),
                ("a later response", ASYNCHRONOUS),
            )
            for exchange in both(f"rules: {name}", number("c_rules", mode), counted=False)
        ),
        *both("caller: a call", number("c_caller", 1), counted=False),
        *both("caller: an unknown model", number("c_caller", -1), counted=False),
        Exchange("caller: its metric", (number("c_caller", 1).binary(), Families("caller_calls"))),
    ],
)
