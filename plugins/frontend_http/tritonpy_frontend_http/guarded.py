"""Calls that must be admitted: somebody looks at the head of the request first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy_frontend_http.access import HttpAccess
from tritonpy_frontend_http.encode import encode_error
from tritonpy_frontend_http.infer_calls import Call, InferCalls, Target


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
