"""The server of gRPC calls: finds the method of a call, runs it and sends its status."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tritonpy import Engine, TritonError
from tritonpy.frontend import FrontendContext, internal_error
from tritonpy_frontend_grpc.call_options import GrpcCallOptions, make_access, make_service
from tritonpy_frontend_grpc.h2.compression import LEVELS, choose_compression
from tritonpy_frontend_grpc.h2.methods import make_methods, unknown
from tritonpy_frontend_grpc.health import Health
from tritonpy_protos import SERVICE

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.h2.h2_call import H2Call
    from tritonpy_frontend_grpc.h2.infer_call import H2InferCall
    from tritonpy_frontend_grpc.h2.task_call import H2TaskCall

INFER = f"/{SERVICE}/ModelInfer"
GRACE_S = 0.25
"""Time for responses in flight to reach their clients at shutdown."""


class CallServer:
    """Serves the inference protocol, grpc.health.v1 and reflection on the running event loop.

    Uncompressed messages may have any size up to protobuf's limit of 2 GiB.
    """

    def __init__(self, engine: Engine, options: GrpcCallOptions, context: FrontendContext) -> None:
        self.log = context.log
        self._access = make_access(options, context)
        self.service = make_service(engine, options, context, self._access)
        self._health = Health(engine)
        self._methods = make_methods(self.service, self._health)
        self._compression = LEVELS[options.infer_response_compression_level]
        self._open: set[asyncio.Task[None]] = set()

    @property
    def is_logging_calls(self) -> bool:
        """Whether calls are logged, which requires other call classes.

        It may change at any time.
        """
        return self.log.isEnabledFor(logging.DEBUG)

    def infer(self, call: H2InferCall) -> None:
        """Start a call of ModelInfer, or end it if its head is invalid or not authorized."""
        try:
            self._enter(call)
        except Exception as error:
            call.fail(self._to_triton_error(error))

    def has_method(self, path: str) -> bool:
        """Return whether `path` is a method other than ModelInfer."""
        return path in self._methods

    async def serve(self, call: H2TaskCall) -> None:
        """Serve a call of any other method, in the task of the call."""
        run = self._methods.get(call.head.path, unknown)
        self._open.add(call.task)
        try:
            try:
                if run is not unknown:
                    self._enter(call)
                await run(call)
            except asyncio.CancelledError:
                if not call.over:
                    raise
                await call.give_up()
            except Exception as error:
                await call.fail(self._to_triton_error(error))
        except asyncio.CancelledError:  # the client disconnected while the status was sent
            if not call.over:
                raise
        finally:
            self._open.discard(call.task)
            call.done()

    async def drain(self) -> None:
        """Refuse inference, report NOT_SERVING, and wait for the requests in flight."""
        self._health.drain()
        await self.service.drain()

    async def close(self) -> None:
        """End open calls after their pending responses.

        Return when clients have the status or after a timeout.
        """
        self._health.close()
        self.service.close()
        if self._open:
            await asyncio.wait(self._open, timeout=GRACE_S)

    def _enter(self, call: H2Call) -> None:
        head = call.head
        head.check()
        if b"grpc-timeout" in head.headers:
            call.start_deadline()
        if self._compression is not None:
            call.compression = choose_compression(self._compression, head.headers)
        if self._access is not None:
            self._access.check_call(head.path, call.metadata())

    def _to_triton_error(self, error: Exception) -> TritonError:
        return (
            error if isinstance(error, TritonError) else internal_error(self.log, "a call", error)
        )
