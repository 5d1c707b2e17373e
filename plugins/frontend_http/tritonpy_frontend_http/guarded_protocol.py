"""Connections whose inference calls need authorization."""

from __future__ import annotations

from tritonpy_frontend_http.access import CallContext, HttpAccess
from tritonpy_frontend_http.head_cache import HeadCache
from tritonpy_frontend_http.infer_calls import InferCalls, Target
from tritonpy_frontend_http.protocol import InferProtocol


class _EmptyHeadCache(HeadCache):
    """A cache that stays empty.

    Every head is parsed, so that every call is authorized in one place.
    """

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Do nothing."""


class GuardedProtocol(InferProtocol):
    """A connection that authorizes inference calls as soon as their head is complete."""

    access: HttpAccess

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._sent: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also store the header as received: forwarded headers keep their capitalization."""
        self._sent.append((name, value))
        super().on_header(name, value)

    def call_context(self, target: Target) -> CallContext | None:
        """Authorize an inference call. `GuardedApplication` authorizes all other calls."""
        return self.access.check_inference(target[0], self._sent)


def guarded_protocol(calls: InferCalls, access: HttpAccess) -> type[InferProtocol]:
    """Return the connection class, bound to the calls of a frontend."""
    return type(
        "GuardedProtocol",
        (GuardedProtocol,),
        {"calls": calls, "heads": _EmptyHeadCache(), "access": access},
    )
