"""Authorization of scrapes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tritonpy import PermissionDenied, TritonError, Unauthenticated
from tritonpy.auth import Authorizer, Verb, joined_headers
from tritonpy_metrics_prometheus.application import MetricsApplication, Send, send_response

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="tritonpy"'),)


class AuthorizedMetrics:
    """Requires the right to read the whole server before `application` responds."""

    def __init__(self, application: MetricsApplication, authorizer: Authorizer) -> None:
        self._application = application
        self._authorizer = authorizer

    async def __call__(self, scope: Mapping[str, object], receive: object, send: Send) -> None:
        """Respond to one request: 401 for an unknown client, 403 without the right."""
        try:
            self._authorizer.admit(_headers(scope), Verb.READ)
        except Unauthenticated as error:
            await send_response(send, 401, b"application/json", _body(error), _CHALLENGE)
        except PermissionDenied as error:
            await send_response(send, 403, b"application/json", _body(error))
        else:
            await self._application(scope, receive, send)


def _headers(scope: Mapping[str, object]) -> dict[str, str]:
    pairs: list[tuple[bytes, bytes]] = scope["headers"]  # type: ignore[assignment]  # the type that ASGI defines
    return joined_headers(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs
    )


def _body(error: TritonError) -> bytes:
    return msgspec.json.encode({"error": error.message})
