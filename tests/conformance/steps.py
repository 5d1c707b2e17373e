"""Takes the steps of exchanges with one server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.conformance import counters, grpc_answer, http_answer
from tests.conformance.exchange import (
    Counted,
    Families,
    Grpc,
    Http,
    Listed,
    LogLines,
    Metrics,
    Raw,
    Step,
    Stream,
    Together,
    WithMemory,
    get,
    post,
)
from tests.conformance.memory_steps import take_with_memory
from tests.conformance.raw_answer import ask_raw
from tests.conformance.server import Server

PAUSE_S = 0.02
TRITON_LINE = re.compile(r"[IWEV]\d{4} ")


def take(server: Server, step: Step, log_start: int) -> Any:
    """Return what a server answers; `log_start` is where its log was when the exchange began."""
    match step:
        case Http():
            return http_answer.ask(server.ports["http"], step)
        case Raw():
            return ask_raw(server.ports["http"], step)
        case Grpc():
            return grpc_answer.ask(server.channel, step)
        case Stream():
            return grpc_answer.ask_stream(server.channel, step)
        case Together():
            with ThreadPoolExecutor(len(step.steps)) as pool:
                return list(pool.map(lambda one: take(server, one, log_start), step.steps))
        case Metrics():
            return counters.families(server, step.prefix)
        case WithMemory():
            return take_with_memory(server, step, lambda one: take(server, one, log_start))
        case Families():
            return counters.shapes(server, step.prefix, step.values)
        case LogLines():
            return _settled(lambda: _lines(server, step.marker, log_start), lambda lines: len(lines) >= step.count)
        case Counted():
            counters.growth(server, step.model, {}, step.requests)
            return http_answer.ask(server.ports["http"], get(f"/v2/models/{step.model}/stats"))
        case Listed():
            return _settled(
                lambda: _index(server, step.model), lambda found: all(one.get("state") != "UNLOADING" for one in found)
            )


def _lines(server: Server, marker: str, start: int) -> list[str]:
    lines = [line for line in server.logged(start).splitlines() if TRITON_LINE.match(line) and marker in line]
    return sorted(f"{line[:1]} {line[line.index(marker) :].removesuffix(chr(34))}" for line in lines)


def _index(server: Server, model: str) -> list[dict[str, Any]]:
    answer = http_answer.ask(server.ports["http"], post("/v2/repository/index"))
    return [entry for entry in answer["json"] if entry["name"] == model]


def _settled(ask: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    """Ask until the answer is good, or for so long that it will never be; return the last answer."""
    deadline = time.monotonic() + counters.SETTLE_S
    while not good(answer := ask()) and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    return answer
