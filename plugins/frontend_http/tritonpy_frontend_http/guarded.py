"""Calls that must be admitted: the ways of the frontend, each with somebody who looks at the head of the request first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy_frontend_http.access import HttpAccess
from tritonpy_frontend_http.encode import encode_error
from tritonpy_frontend_http.infer_calls import Call, InferCalls, Target
from tritonpy_frontend_http.known_heads import KnownHeads
from tritonpy_frontend_http.protocol import InferCycle, InferProtocol


class GuardedDoor:
    """An ASGI application in front of another: what is refused does not get there."""

    def __init__(self, door: Any, access: HttpAccess) -> None:
        self._door = door
        self._access = access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = self._access.refusal(scope)
        if refusal is None:
            await self._door(scope, receive, send)
            return
        reply = encode_error(refusal)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        await send({"type": "http.response.body", "body": b"".join(reply.parts)})


class GuardedCalls(InferCalls):
    """Inference calls whose `visit` says whether they go on. A refused one is answered before its model is looked up or its body read."""

    def start(self, call: Call, target: Target, headers: Mapping[bytes, bytes], body: bytes) -> None:
        """Begin a call that was admitted, answer one that was not."""
        if call.visit is None or call.visit.refusal is None:
            super().start(call, target, headers, body)
        else:
            self._open += 1
            self._finish(call, encode_error(call.visit.refusal))


class _NoHeads(KnownHeads):
    """Knows none: each head is parsed, so that there is one place where calls are admitted."""

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Learn nothing."""


class GuardedProtocol(InferProtocol):
    """A connection whose inference calls are judged when their head is complete; the body of a refused one is dropped as it comes."""

    access: HttpAccess

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._sent: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the name as it was sent too: a forwarded header keeps its capitals."""
        self._sent.append((name, value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Judge an inference call; the others are judged at the front door."""
        before = self.cycle
        super().on_headers_complete()
        cycle: Any = self.cycle
        if (
            cycle is not before and type(cycle) is InferCycle
        ):  # a head that was not taken leaves the cycle of the request before
            cycle.visit = self.access.visit(cycle.target[0], self._sent)

    def on_body(self, body: bytes) -> None:
        """Take the body of an admitted call."""
        cycle: Any = self.cycle
        if type(cycle) is not InferCycle or cycle.visit is None or cycle.visit.refusal is None:
            super().on_body(body)
        else:
            self.moved()


class Guard:
    """What a frontend uses instead of its own parts where calls must be admitted."""

    calls = GuardedCalls

    def __init__(self, access: HttpAccess) -> None:
        self._access = access

    def protocol(self, calls: InferCalls) -> type[InferProtocol]:
        """Return the class of connections, bound to the calls of a frontend."""
        members = {"calls": calls, "heads": _NoHeads(), "access": self._access}
        return type("GuardedProtocol", (GuardedProtocol,), members)

    def door(self, door: Any) -> GuardedDoor:
        """Return the ASGI application."""
        return GuardedDoor(door, self._access)
