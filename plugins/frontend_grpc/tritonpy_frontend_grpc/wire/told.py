"""Calls that are told of in the log when they are over; what carries them is a further base of each class."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tritonpy_frontend_grpc.status import NAMES
from tritonpy_frontend_grpc.told import model_of, tell
from tritonpy_frontend_grpc.wire.exchange import Exchange
from tritonpy_frontend_grpc.wire.infer_call import CarriedInferCall


class ToldExchange(Exchange):
    """Keeps the name of the model that its message asks for; a call of many messages is told of without one."""

    _model = ""

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    async def message(self) -> bytes:
        """Return the message, and remember its model."""
        raw = await super().message()
        self._model = await model_of(self.head.path, raw)
        return raw

    def done(self) -> None:
        """Tell of the call."""
        super().done()
        tell(self._log, self.head.path, NAMES[self.status], self._model)


class ToldInferCall(CarriedInferCall):
    """Reads its message for the name of the model, too."""

    _model: asyncio.Future[str] | None = None

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    def hand_over(self, message: bytes) -> None:
        """Pass the message to the service, and read the name of the model from it."""
        self._model = asyncio.ensure_future(model_of(self.head.path, message))
        super().hand_over(message)

    def done(self) -> None:
        """Tell of the call, as soon as the name of its model is known."""
        super().done()
        if self._model is None:
            self._tell("")
        else:
            self._model.add_done_callback(lambda named: self._tell(named.result()))

    def _tell(self, model: str) -> None:
        tell(self._log, self.head.path, NAMES[self.status], model)
