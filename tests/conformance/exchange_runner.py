"""Runs exchanges on one server and keeps the models loaded that they need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from tests.conformance import counters, http_response
from tests.conformance.exchange import Exchange, Topic, keyed, load, unload
from tests.conformance.normalization import normalized
from tests.conformance.server import Server
from tests.conformance.steps import take

LOADS = 4
"""How many models are loaded at a time: a load is mostly the start of a process."""
Start = Callable[[tuple[str, ...]], contextlib.AbstractContextManager[Server]]


class ServerDied(Exception):
    """The server ended during an exchange."""


class ExchangeRunner:
    """Runs exchanges on the server that `start` starts with the flags of a topic.

    A server that dies is restarted and the exchange repeated, up to `restarts` times per exchange.
    """

    def __init__(self, start: Start, restarts: int = 0) -> None:
        self._start = start
        self._restarts = restarts
        self._running = contextlib.ExitStack()
        self._topic: Topic | None = None
        self._flags: tuple[str, ...] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def run(self, topic: Topic, exchange: Exchange) -> dict[str, Any]:
        """Return the normalized responses by step number, and the counter increments.

        Raises RuntimeError if a model of the topic cannot be loaded, ServerDied after the last
        restart.
        """
        for _ in range(self._restarts + 1):
            self._prepare(topic)
            try:
                found = self._run_steps(exchange)
            except Exception:
                if self._server.alive():
                    raise
            if self._server.alive():
                return dict(normalized(found))
            self._stop()
        raise ServerDied(f"'{exchange.name}' ended it")

    def _stop(self) -> None:
        self._running.close()
        self._topic = self._flags = None

    def _run_with(self, flags: tuple[str, ...]) -> None:
        if flags == self._flags:
            return
        self._stop()
        self._server = self._running.enter_context(self._start(flags))
        self._flags = flags

    def _prepare(self, topic: Topic) -> None:
        if topic is self._topic:
            return
        self._run_with(topic.flags)
        for model in self._topic.models if self._topic else ():
            http_response.send(self._server.ports["http"], keyed(unload(model)))
        self._topic = None
        with ThreadPoolExecutor(LOADS) as pool:
            list(pool.map(self._load, topic.models))
        self._topic = topic

    def _load(self, model: str) -> None:
        response = http_response.send(self._server.ports["http"], keyed(load(model)))
        if response.get("status") != 200:
            raise RuntimeError(f"'{model}' cannot be loaded: {response}")

    def _run_steps(self, exchange: Exchange) -> dict[str, Any]:
        self._server.clear_meetings()
        before = {model: counters.statistics(self._server, model) for model in exchange.counted}
        start = self._server.log_size()
        found: dict[str, Any] = {
            str(number): take(self._server, step, start)
            for number, step in enumerate(exchange.steps)
        }
        for model, requests in exchange.counted.items():
            found[f"counts of {model}"] = counters.growth(
                self._server, model, before[model], requests
            )
        return found


def run_on_both(
    triton: ExchangeRunner, tritonpy: ExchangeRunner, topic: Topic, exchange: Exchange
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run an exchange on two servers concurrently; return both results. Raises what `run` raises."""
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(one.run, topic, exchange) for one in (triton, tritonpy)]
        return results[0].result(), results[1].result()
