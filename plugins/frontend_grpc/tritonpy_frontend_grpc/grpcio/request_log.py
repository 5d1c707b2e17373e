"""The request log on grpc.aio: at verbose level 1, one line per call with method and status."""

from __future__ import annotations

import logging
from typing import Any

import grpc


class RequestLog:
    """Adds logging to method handlers while request logging is on.

    The level may change at any time.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def wrap(self, handler: Any, method: str) -> Any:
        """Return `handler`, or a wrapper that logs its calls; `method` is its path."""
        if not self._log.isEnabledFor(logging.DEBUG):
            return handler
        from tritonpy_frontend_grpc.grpcio.logged_handler import logged_handler

        return logged_handler(handler, method, self._log)


class LoggedHandlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its types alone
    """Handlers of services with request logging."""

    def __init__(self, handlers: grpc.GenericRpcHandler[Any, Any], request_log: RequestLog) -> None:
        self._handlers = handlers
        self._request_log = request_log

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found: Any = self._handlers.service(handler_call_details)
        return (
            found if found is None else self._request_log.wrap(found, handler_call_details.method)
        )
