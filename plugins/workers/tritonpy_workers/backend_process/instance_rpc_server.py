"""RPC server for the server's queries about the instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread

import msgspec

from tritonpy import Code, TritonError
from tritonpy.execution import exception_text
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.channel import Channel

QueryHandler = Callable[..., object]


class InstanceRpcServer:
    """Executes each query on its own thread; `handlers` are by verb, and get its arguments."""

    def __init__(self, channel: Channel, handlers: Mapping[str, QueryHandler]) -> None:
        self._channel = channel
        self._handlers = handlers
        channel.on(Kind.QUERY, self._handle_query)

    def _handle_query(self, frame: Frame) -> None:
        number, verb = frame.words[0], frame.extras["verb"]
        handler = self._handlers.get(verb)
        if handler is None:
            text = f"workers support only the queries {' and '.join(self._handlers)}"
            self._channel.send(
                Kind.QUERY_RESULT, [number], extras={"error": [int(Code.UNSUPPORTED), text]}
            )
            return
        call = partial(handler, **frame.extras.get("arguments", {}))
        Thread(target=self._respond, args=(number, call), name=verb, daemon=True).start()

    def _respond(self, number: int, call: Callable[[], object]) -> None:
        result: dict[str, object]
        try:
            result = {"value": msgspec.to_builtins(call())}
        except Exception as error:
            code = error.code if isinstance(error, TritonError) else Code.INTERNAL
            result = {"error": [int(code), exception_text(error)]}
        self._channel.send(Kind.QUERY_RESULT, [number], extras=result)
