"""Calls that are told of in the log when they are over."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc

from tritonpy_frontend_envoy.grpc.exchange import Exchange
from tritonpy_frontend_envoy.grpc.frames import Frame
from tritonpy_frontend_envoy.grpc.infer_call import EnvoyInferCall
from tritonpy_frontend_grpc.told_calls import model_of, tell

_NAMES = {status.value[0]: status.name for status in grpc.StatusCode}


class ToldExchange(Exchange):
    """Keeps the name of the model that its message asks for; a call of many messages is told of without one."""

    _model = ""

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    async def message(self) -> bytes:
        """Return the message, and remember its model."""
        raw = await super().message()
        self._model = await model_of(self.scope["path"], raw)
        return raw

    def done(self) -> None:
        """Tell of the call."""
        super().done()
        tell(self._log, self.scope["path"], _NAMES[self.status], self._model)


class ToldInferCall(EnvoyInferCall):
    """Reads its message for the name of the model, too."""

    _model: asyncio.Future[str] | None = None

    def __init__(self, log: logging.Logger, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    def done(self) -> None:
        """Tell of the call, as soon as the name of its model is known."""
        super().done()
        if self._model is None:
            self._tell("")
        else:
            self._model.add_done_callback(lambda named: self._tell(named.result()))

    def _begin(self, frame: Frame) -> None:
        self._model = asyncio.ensure_future(model_of(self.scope["path"], frame.message))
        super()._begin(frame)

    def _tell(self, model: str) -> None:
        tell(self._log, self.scope["path"], _NAMES[self.status], model)
