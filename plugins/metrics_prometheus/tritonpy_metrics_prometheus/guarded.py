"""Metrics for those who may read."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tritonpy import Gatekeeper, PermissionDenied, TritonError, Unauthenticated, Verb, joined_headers
from tritonpy_metrics_prometheus.application import MetricsApplication, Send, answer

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="tritonpy"'),)


class GuardedMetrics:
    """Asks `gatekeeper` for the right to read the whole server before `application` answers."""

    def __init__(self, application: MetricsApplication, gatekeeper: Gatekeeper) -> None:
        self._application = application
        self._gatekeeper = gatekeeper

    async def __call__(self, scope: Mapping[str, object], receive: object, send: Send) -> None:
        """Answer one request: 401 for an unknown caller, 403 for one without the right."""
        try:
            self._gatekeeper.admit(_headers(scope), Verb.READ)
        except Unauthenticated as error:
            await answer(send, 401, b"application/json", _body(error), _CHALLENGE)
        except PermissionDenied as error:
            await answer(send, 403, b"application/json", _body(error))
        else:
            await self._application(scope, receive, send)


def _headers(scope: Mapping[str, object]) -> dict[str, str]:
    pairs: list[tuple[bytes, bytes]] = scope["headers"]  # type: ignore[assignment]  # ASGI says so
    return joined_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)


def _body(error: TritonError) -> bytes:
    return msgspec.json.encode({"error": error.message})
