"""What serves the calls of a frontend: finds the method of a call, runs it, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tritonpy import Engine, FrontendContext, TritonError, incident
from tritonpy_frontend_grpc.call_options import CallOptions, access_of, service_of
from tritonpy_frontend_grpc.health import Health
from tritonpy_frontend_grpc.wire.compression import LEVELS, accepted
from tritonpy_frontend_grpc.wire.methods import methods_of, unknown
from tritonpy_protos import SERVICE

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.wire.carried_call import CarriedCall
    from tritonpy_frontend_grpc.wire.exchange import Exchange
    from tritonpy_frontend_grpc.wire.infer_call import CarriedInferCall

INFER = f"/{SERVICE}/ModelInfer"
GRACE_S = 0.25
"""How long answers that are on their way may take to reach their clients when everything else is over."""


class Serving:
    """The inference protocol, grpc.health.v1 and reflection on the event loop that it is made on.

    Messages that are not compressed may have any size that protobuf can carry (2 GiB).
    """

    def __init__(self, engine: Engine, options: CallOptions, context: FrontendContext) -> None:
        self.log = context.log
        self._access = access_of(options, context)
        self.service = service_of(engine, options, context, self._access)
        self._health = Health(engine)
        self._methods = methods_of(self.service, self._health)
        self._compression = LEVELS[options.infer_response_compression_level]
        self._open: set[asyncio.Task[None]] = set()

    @property
    def tells(self) -> bool:
        """Whether calls are told of in the log, for which they need a class of their own; it may change at any time."""
        return self.log.isEnabledFor(logging.DEBUG)

    def infer(self, call: CarriedInferCall) -> None:
        """Begin a call of ModelInfer, or end it where its head says that it must not go on."""
        try:
            self._enter(call)
        except Exception as error:
            call.fail(self._failure(error))
        else:
            call.read()

    def knows(self, path: str) -> bool:
        """Say whether a path is that of a method other than ModelInfer."""
        return path in self._methods

    async def answer(self, exchange: Exchange) -> None:
        """Serve a call of any other method, in the task that it was made in."""
        run = self._methods.get(exchange.head.path, unknown)
        self._open.add(exchange.task)
        try:
            try:
                if run is not unknown:
                    self._enter(exchange)
                await run(exchange)
            except asyncio.CancelledError:
                if not exchange.over:
                    raise
                await exchange.give_up()
            except Exception as error:
                await exchange.fail(self._failure(error))
        except asyncio.CancelledError:  # the client left while it was told
            if not exchange.over:
                raise
        finally:
            self._open.discard(exchange.task)
            exchange.done()

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered."""
        self._health.drain()
        await self.service.drain()

    async def close(self) -> None:
        """End the calls that clients hold open, once they have what was answered; return when they have heard of it, or were given time to."""
        self._health.close()
        self.service.close()
        if self._open:
            await asyncio.wait(self._open, timeout=GRACE_S)

    def _enter(self, call: CarriedCall) -> None:
        head = call.head
        head.check()
        if b"grpc-timeout" in head.headers:
            call.limit_time()
        if self._compression is not None:
            call.compression = accepted(self._compression, head.headers)
        if self._access is not None:
            self._access.enter(head.path, call.metadata())

    def _failure(self, error: Exception) -> TritonError:
        return error if isinstance(error, TritonError) else incident(self.log, "a call", error)
