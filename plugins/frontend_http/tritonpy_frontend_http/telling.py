"""Whether requests are told of in the log: at verbose level 1 each of them is, with method, path and status."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any


def tells(log: logging.Logger) -> bool:
    """Say whether each request is told of now; the level may change at any time."""
    return log.isEnabledFor(logging.DEBUG)


class TellingDoor:
    """An ASGI application in front of another, which it leaves to itself while nothing is told."""

    def __init__(self, door: Any, log: logging.Logger) -> None:
        self._door = door
        self._log = log

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Return the answering of a request."""
        if not tells(self._log):
            answering: Awaitable[None] = self._door(scope, receive, send)
            return answering
        from tritonpy_frontend_http.told_requests import answer_and_tell

        return answer_and_tell(self._door, self._log, scope, receive, send)
