"""Connections whose inference calls must be admitted."""

from __future__ import annotations

from tritonpy_frontend_http.access import HttpAccess, Visit
from tritonpy_frontend_http.infer_calls import InferCalls, Target
from tritonpy_frontend_http.known_heads import KnownHeads
from tritonpy_frontend_http.protocol import InferProtocol


class _NoHeads(KnownHeads):
    """Knows none: each head is parsed, so that there is one place where calls are admitted."""

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Learn nothing."""


class GuardedProtocol(InferProtocol):
    """A connection whose inference calls are judged when their head is complete."""

    access: HttpAccess

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._sent: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the name as it was sent too: a forwarded header keeps its capitals."""
        self._sent.append((name, value))
        super().on_header(name, value)

    def visit_of(self, target: Target) -> Visit | None:
        """Judge an inference call; the others are judged at the front door."""
        return self.access.visit(target[0], self._sent)


def guarded_protocol(calls: InferCalls, access: HttpAccess) -> type[InferProtocol]:
    """Return the class of connections, bound to the calls of a frontend."""
    return type("GuardedProtocol", (GuardedProtocol,), {"calls": calls, "heads": _NoHeads(), "access": access})
