"""Calls on HTTP/2 streams with request logging."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tritonpy_frontend_grpc.h2.infer_call import H2InferCall
from tritonpy_frontend_grpc.h2.task_call import H2TaskCall
from tritonpy_frontend_grpc.log_line import log_call, requested_model
from tritonpy_frontend_grpc.status import NAMES


class LoggedTaskCall(H2TaskCall):
    """Logs a call with the model in its message.

    A call of many messages is logged without a model.
    """

    _model = ""

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    async def message(self) -> bytes:
        """Return the message, and store its model for the log."""
        raw = await super().message()
        self._model = await requested_model(self.head.path, raw)
        return raw

    def done(self) -> None:
        """End the call and log it."""
        super().done()
        log_call(self._log, self.head.path, NAMES[self.status], self._model)


class LoggedInferCall(H2InferCall):
    """Logs a ModelInfer call with the model in its message."""

    _model: asyncio.Future[str] | None = None

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    def submit(self, message: bytes) -> None:
        """Pass the message to the service, and read the model name for the log."""
        self._model = asyncio.ensure_future(requested_model(self.head.path, message))
        super().submit(message)

    def done(self) -> None:
        """End the call and log it as soon as the model name is known."""
        super().done()
        if self._model is None:
            self._log_call("")
        else:
            self._model.add_done_callback(lambda future: self._log_call(future.result()))

    def _log_call(self, model: str) -> None:
        log_call(self._log, self.head.path, NAMES[self.status], model)
