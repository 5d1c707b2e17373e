"""A server that remembers what a model queries of it."""

from __future__ import annotations

from threading import Lock
from typing import Any

from tritonpy_worker.host import Host


class FakeHost(Host):
    """Takes results (or exceptions) of queries from `answers`, and of calls from `responses`."""

    name = "m_0_0"
    model_directory = "/models/m/1"

    def __init__(self, decoupled: bool = False) -> None:
        self.decoupled = decoupled
        self.sent: list[Any] = []
        self.abandoned: list[int] = []
        self.cancelled: set[int] = set()
        self.logged: list[Any] = []
        self.queries: list[Any] = []
        self.notifications: list[Any] = []
        self.calls: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.responses: list[Any] = []
        self.contexts: dict[int, str] = {}
        self._lock = Lock()

    def send(self, request, response, final):
        with self._lock:
            self.sent.append((request, response, final))
        if "send" in self.answers:
            raise self.answers["send"]

    def abandon(self, request):
        self.abandoned.append(request)

    def is_cancelled(self, request):
        return request in self.cancelled

    def call(self, call):
        self.calls.append(call)
        return self.responses[0]

    def call_stream(self, call):
        self.calls.append(call)
        return FakeStream(self.responses)

    async def call_async(self, call):
        self.calls.append(call)
        return FakeStream(self.responses) if call.decoupled else self.responses[0]

    def trace_context(self, request):
        return self.contexts.get(request)

    def share(self, key, build):
        return dict(build())

    def log(self, level, message):
        self.logged.append((level, message))

    def query(self, verb, arguments):
        self.queries.append((verb, arguments))
        answer = self.answers.get(verb)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def notify(self, verb, arguments):
        self.notifications.append((verb, arguments))


class FakeStream:
    """The host's stream of a decoupled call."""

    def __init__(self, responses):
        self._responses = iter(responses)
        self.cancelled = False

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._responses)

    def cancel(self):
        self.cancelled = True
