"""The application: finds the method of a call, runs it, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tritonpy import Engine, FrontendContext, TritonError, incident
from tritonpy_frontend_envoy.embedded.loops import ANSWERED
from tritonpy_frontend_envoy.embedded.reception import Reception, Surroundings
from tritonpy_frontend_envoy.grpc.compression import LEVELS, accepted
from tritonpy_frontend_envoy.grpc.exchange import Exchange
from tritonpy_frontend_envoy.grpc.head import check_head, is_grpc_type
from tritonpy_frontend_envoy.grpc.infer_call import EnvoyInferCall
from tritonpy_frontend_envoy.grpc.methods import methods_of, unknown
from tritonpy_frontend_envoy.grpc.replies import END, NOT_GRPC
from tritonpy_frontend_grpc.call_options import CallOptions, access_of, service_of
from tritonpy_frontend_grpc.health import Health
from tritonpy_protos import SERVICE

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.grpc.carried_call import CarriedCall
    from tritonpy_frontend_envoy.grpc.methods import Run

INFER = f"/{SERVICE}/ModelInfer"
_GRACE_S = 0.25  # as long as grpc.aio's server is given


class GrpcApplication:
    """Serves the inference protocol, grpc.health.v1 and reflection on the event loop that it is made on.

    Messages that are not compressed may have any size that protobuf can carry (2 GiB).
    """

    def __init__(
        self, engine: Engine, options: CallOptions, context: FrontendContext, surroundings: Surroundings
    ) -> None:
        self._log = context.log
        self._around = surroundings
        self._access = access_of(options, context)
        self._service = service_of(engine, options, context, self._access)
        self._health = Health(engine)
        self._methods = methods_of(self._service, self._health)
        self._compression = LEVELS[options.infer_response_compression_level]
        self._open: set[asyncio.Task[None]] = set()

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Begin a call; return ANSWERED, or a coroutine. What is no gRPC call gets 415 Unsupported Media Type."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path = scope["path"]
        if not is_grpc_type(headers.get(b"content-type", b"")):
            send(NOT_GRPC)
            send(END)
        elif path == INFER:
            self._infer(scope, headers, receive, send)
        else:
            return self._answer(
                self._methods.get(path, unknown), scope, headers, Reception(receive, self._around), send
            )
        return ANSWERED

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered."""
        self._health.drain()
        await self._service.drain()

    async def close(self) -> None:
        """End the calls that clients hold open, once they have what was answered; return when they have heard of it, or were given time to."""
        self._health.close()
        self._service.close()
        if self._open:
            await asyncio.wait(self._open, timeout=_GRACE_S)

    def _infer(self, scope: Any, headers: dict[bytes, bytes], receive: Any, send: Any) -> None:
        kind = EnvoyInferCall if not self._log.isEnabledFor(logging.DEBUG) else self._told_infer_call
        call = kind(self._service, self._around, scope, headers, receive, send)
        try:
            self._enter(call)
        except Exception as error:
            call.fail(self._failure(error))
        else:
            call.read()

    async def _answer(self, run: Run, scope: Any, headers: dict[bytes, bytes], receive: Any, send: Any) -> None:
        tells = run is not unknown and self._log.isEnabledFor(logging.DEBUG)
        exchange = (self._told_exchange if tells else Exchange)(scope, headers, receive, send)
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

    def _enter(self, call: CarriedCall) -> None:
        check_head(call.scope["method"], call.headers)
        if b"grpc-timeout" in call.headers:
            call.limit_time()
        if self._compression is not None:
            call.compression = accepted(self._compression, call.headers)
        if self._access is not None:
            self._access.enter(call.scope["path"], call.metadata())

    def _failure(self, error: Exception) -> TritonError:
        return error if isinstance(error, TritonError) else incident(self._log, "a call", error)

    def _told_infer_call(self, *arguments: Any) -> EnvoyInferCall:
        from tritonpy_frontend_envoy.grpc.told import ToldInferCall

        return ToldInferCall(self._log, *arguments)

    def _told_exchange(self, *arguments: Any) -> Exchange:
        from tritonpy_frontend_envoy.grpc.told import ToldExchange

        return ToldExchange(self._log, *arguments)
