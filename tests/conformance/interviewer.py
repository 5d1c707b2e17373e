"""Asks one server whole exchanges, and keeps the models loaded that they need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Self

from tests.conformance import counters, http_answer
from tests.conformance.exchange import Exchange, Topic, load, unload
from tests.conformance.normal import normal
from tests.conformance.server import Server
from tests.conformance.steps import take

Start = Callable[[], contextlib.AbstractContextManager[Server]]


class ServerDied(Exception):
    """The server ended in the middle of an exchange."""


class Interviewer:
    """Asks the server that `start` starts. A server that dies is started again and asked again, up to `restarts` times per exchange."""

    def __init__(self, start: Start, restarts: int = 0) -> None:
        self._start = start
        self._restarts = restarts
        self._running = contextlib.ExitStack()
        self._topic: Topic | None = None

    def __enter__(self) -> Self:
        self._server = self._running.enter_context(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def answers(self, topic: Topic, exchange: Exchange) -> dict[str, Any]:
        """Return the normal form of all answers, by the number of their step, and of what was counted meanwhile.

        RuntimeError where a model of the topic cannot be loaded, ServerDied where the server ended once too often.
        """
        for _ in range(self._restarts + 1):
            self._prepare(topic)
            try:
                found = self._ask(exchange)
            except Exception:
                if self._server.alive():
                    raise
            if self._server.alive():
                return dict(normal(found))
            self._restart()
        raise ServerDied(f"'{exchange.name}' ended it")

    def _restart(self) -> None:
        self._running.close()
        self._topic = None
        self._server = self._running.enter_context(self._start())

    def _prepare(self, topic: Topic) -> None:
        if topic is self._topic:
            return
        for model in self._topic.models if self._topic else ():
            http_answer.ask(self._server.ports["http"], unload(model))
        self._topic = None
        for model in topic.models:
            answer = http_answer.ask(self._server.ports["http"], load(model))
            if answer.get("status") != 200:
                raise RuntimeError(f"'{model}' cannot be loaded: {answer}")
        self._topic = topic

    def _ask(self, exchange: Exchange) -> dict[str, Any]:
        before = {model: counters.statistics(self._server, model) for model in exchange.counted}
        start = self._server.log_size()
        found: dict[str, Any] = {
            str(number): take(self._server, step, start) for number, step in enumerate(exchange.steps)
        }
        for model, requests in exchange.counted.items():
            found[f"counts of {model}"] = counters.growth(self._server, model, before[model], requests)
        return found
