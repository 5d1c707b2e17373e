"""Whether calls are told of in the log: at verbose level 1 each of them is, with its method and status."""

from __future__ import annotations

import logging
from typing import Any

import grpc


class Telling:
    """Makes a method's handler tell of its call, while that is wanted; the level may change at any time."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def handler(self, handler: Any, method: str) -> Any:
        """Return `handler`, or one round it; `method` is its path."""
        if not self._log.isEnabledFor(logging.DEBUG):
            return handler
        from tritonpy_frontend_grpc.told_calls import telling

        return telling(handler, method, self._log)


class TellingHandlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its types alone
    """The handlers of services, whose calls are told of."""

    def __init__(self, handlers: grpc.GenericRpcHandler[Any, Any], telling: Telling) -> None:
        self._handlers = handlers
        self._telling = telling

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found: Any = self._handlers.service(handler_call_details)
        return found if found is None else self._telling.handler(found, handler_call_details.method)
