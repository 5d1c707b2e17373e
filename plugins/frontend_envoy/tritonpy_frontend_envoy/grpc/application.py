"""The application: makes the calls of what pyvoy brings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tritonpy_frontend_envoy.embedded.loops import ANSWERED, call_on
from tritonpy_frontend_envoy.embedded.reception import Reception, Surroundings
from tritonpy_frontend_envoy.embedded.switch import Application
from tritonpy_frontend_envoy.grpc.exchange import EnvoyExchange
from tritonpy_frontend_envoy.grpc.infer_call import EnvoyInferCall
from tritonpy_frontend_envoy.grpc.replies import END, NOT_GRPC
from tritonpy_frontend_grpc.wire.head import Head, is_grpc_type
from tritonpy_frontend_grpc.wire.serving import INFER, Serving

if TYPE_CHECKING:
    from tritonpy import Engine, FrontendContext
    from tritonpy_frontend_grpc.call_options import CallOptions


class GrpcApplication(Application):
    """Serves the inference protocol, grpc.health.v1 and reflection on the event loop that it is made on."""

    def __init__(
        self, engine: Engine, options: CallOptions, context: FrontendContext, surroundings: Surroundings
    ) -> None:
        self.serving = Serving(engine, options, context)
        self._around = surroundings
        self._loop = asyncio.get_running_loop()
        self._last: tuple[Head, Serving | None] | None = None

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Begin a call; return ANSWERED, or a coroutine. What is no gRPC call gets 415 Unsupported Media Type."""
        head = Head(scope["method"], scope["path"], scope["headers"])
        if not is_grpc_type(head.headers.get(b"content-type", b"")):
            send(NOT_GRPC)
            send(END)
        elif head.path == INFER:
            self._infer(head, receive, send)
        else:
            return self._answer(head, Reception(receive, self._around), send)
        return ANSWERED

    def ask_ahead(self, scope: Any, receive: Any, send: Any) -> bool:
        """Begin a call of ModelInfer whose head nobody has to look at before its body comes: who calls is asked first of all."""
        serving = self.serving
        if scope["path"] != INFER or serving.asks_who_calls or serving.tells:
            return False
        last = self._last
        if last is None or last[0].pairs != scope["headers"] or last[0].method != scope["method"]:
            last = self._look_at(Head(scope["method"], INFER, scope["headers"]))
            if last is None:
                return False
        call = EnvoyInferCall(serving.service, self._around, last[0], receive, send, last[1])
        at_hand = self._around.next_future.ask(receive, call)
        if at_hand is not None:
            call_on(self._loop, call.set_result, at_hand)
        return True

    def _look_at(self, head: Head) -> tuple[Head, Serving | None] | None:
        """Return a head of ModelInfer and who has to admit its calls one by one, None where it is no gRPC call; the next ones mostly say the same."""
        if not is_grpc_type(head.headers.get(b"content-type", b"")):
            return None
        self._last = head, None if self.serving.admits_all(head) else self.serving
        return self._last

    def _infer(self, head: Head, receive: Any, send: Any) -> None:
        serving = self.serving
        if serving.tells:
            from tritonpy_frontend_envoy.grpc.told import ToldEnvoyInferCall

            serving.infer(ToldEnvoyInferCall(serving.log, serving.service, self._around, head, receive, send))
        else:
            serving.infer(EnvoyInferCall(serving.service, self._around, head, receive, send))

    async def _answer(self, head: Head, reception: Reception, send: Any) -> None:
        if self.serving.tells and self.serving.knows(head.path):
            from tritonpy_frontend_envoy.grpc.told import ToldEnvoyExchange

            exchange: EnvoyExchange = ToldEnvoyExchange(self.serving.log, head, reception, send)
        else:
            exchange = EnvoyExchange(head, reception, send)
        exchange.task = asyncio.current_task()
        await self.serving.answer(exchange)
