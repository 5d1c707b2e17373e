"""The request log: at verbose level 1, one line per request with method, path and status."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any


def is_logging_requests(log: logging.Logger) -> bool:
    """Return whether requests are logged. The level may change at any time."""
    return log.isEnabledFor(logging.DEBUG)


class LoggedApplication:
    """An ASGI application that logs the requests of another one while request logging is on."""

    def __init__(self, application: Any, log: logging.Logger) -> None:
        self._application = application
        self._log = log

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Return an awaitable that handles the request."""
        if not is_logging_requests(self._log):
            handling: Awaitable[None] = self._application(scope, receive, send)
            return handling
        from tritonpy_http_api.logged_requests import serve_and_log

        return serve_and_log(self._application, self._log, scope, receive, send)
