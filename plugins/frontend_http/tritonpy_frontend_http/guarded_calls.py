"""Calls that need authorization before they are handled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy_frontend_http.access import HttpAccess
from tritonpy_frontend_http.encode import encode_error
from tritonpy_frontend_http.infer_calls import HttpInferCall, InferCalls, Target


class GuardedApplication:
    """An ASGI application that passes only authorized calls to another one."""

    def __init__(self, application: Any, access: HttpAccess) -> None:
        self._application = application
        self._access = access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = self._access.check_request(scope)
        if refusal is None:
            await self._application(scope, receive, send)
            return
        http_response = encode_error(refusal)
        await send(
            {
                "type": "http.response.start",
                "status": http_response.status,
                "headers": http_response.headers,
            }
        )
        await send({"type": "http.response.body", "body": b"".join(http_response.parts)})


class GuardedCalls(InferCalls):
    """Inference calls that need authorization.

    A denied call ends before its model is looked up or its body is read.
    """

    def start(
        self, call: HttpInferCall, target: Target, headers: Mapping[bytes, bytes], body: bytes
    ) -> None:
        """Start an authorized call, or send the refusal of a denied one."""
        if call.context is None or call.context.refusal is None:
            super().start(call, target, headers, body)
        else:
            self._inflight += 1
            self._finish(call, encode_error(call.context.refusal))
