"""Connections whose inference calls need authorization."""

from __future__ import annotations

from tritonpy_http_api.access import CallContext, HttpAccess
from tritonpy_http_api.infer_calls import InferCalls, Target
from tritonpy_http_api.protocol import InferProtocol


class GuardedProtocol(InferProtocol):
    """A connection that authorizes inference calls as soon as their head is complete."""

    access: HttpAccess | None

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
        if self.access is None:
            return None
        return self.access.check_inference(target[0], self._sent)


def guarded_protocol(calls: InferCalls, access: HttpAccess) -> type[InferProtocol]:
    """Return the connection class, bound to the calls of a frontend."""
    return type(
        "GuardedProtocol",
        (GuardedProtocol,),
        {"calls": calls, "heads": None, "access": access},
    )
