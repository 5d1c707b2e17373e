"""Calls that need authorization before they are handled."""

from __future__ import annotations

from typing import Any

from tritonpy_http_api.access import HttpAccess
from tritonpy_http_api.encode import encode_error


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
