"""Runs the steps of exchanges on one server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.conformance import counters, grpc_response, http_response
from tests.conformance.exchange import (
    Concurrent,
    Families,
    Grpc,
    Http,
    IndexEntry,
    LogLines,
    Metrics,
    ModelStatistics,
    Raw,
    SharedMemorySteps,
    Step,
    Stream,
    get,
    post,
)
from tests.conformance.memory_steps import run_with_memory
from tests.conformance.raw_response import send_raw
from tests.conformance.server import Server

PAUSE_S = 0.02
TRITON_LINE = re.compile(r"[IWEV]\d{4} ")


def take(server: Server, step: Step, log_start: int) -> Any:
    """Return the response of a server; `log_start` is the log position before the exchange."""
    match step:
        case Http():
            return http_response.send(server.ports["http"], step)
        case Raw():
            return send_raw(server.ports["http"], step)
        case Grpc():
            return grpc_response.send(server.channel, step)
        case Stream():
            return grpc_response.send_stream(server.channel, step)
        case Concurrent():
            with ThreadPoolExecutor(len(step.steps)) as pool:
                return list(pool.map(lambda one: take(server, one, log_start), step.steps))
        case Metrics():
            return counters.families(server, step.prefix)
        case SharedMemorySteps():
            return run_with_memory(server, step, lambda one: take(server, one, log_start))
        case Families():
            return counters.shapes(server, step.prefix, step.values)
        case LogLines():
            return _settled(
                lambda: _lines(server, step.marker, log_start),
                lambda lines: len(lines) >= step.count,
            )
        case ModelStatistics():
            counters.growth(server, step.model, {}, step.requests)
            return http_response.send(server.ports["http"], get(f"/v2/models/{step.model}/stats"))
        case IndexEntry():
            return _settled(
                lambda: _index(server, step.model),
                lambda found: all(one.get("state") != "UNLOADING" for one in found),
            )


def _lines(server: Server, marker: str, start: int) -> list[str]:
    lines = [
        line
        for line in server.logged(start).splitlines()
        if TRITON_LINE.match(line) and marker in line
    ]
    return sorted(
        f"{line[:1]} {line[line.index(marker) :].removesuffix(chr(34))}" for line in lines
    )


def _index(server: Server, model: str) -> list[dict[str, Any]]:
    response = http_response.send(server.ports["http"], post("/v2/repository/index"))
    return [entry for entry in response["json"] if entry["name"] == model]


def _settled(read: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    """Read until the response is good or the time is over; return the last response."""
    deadline = time.monotonic() + counters.SETTLE_S
    while not good(response := read()) and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    return response
