"""The server's question whether the instance is ready."""

from __future__ import annotations

from threading import Thread

from tritonpy.api.backend import Backend
from tritonpy.errors import Code, TritonError
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel


class Readiness:
    """Asks the backend on a thread of its own, as the server does with instances of its own process."""

    def __init__(self, channel: Channel, backend: Backend) -> None:
        self._channel = channel
        self._backend = backend
        channel.on(Kind.ASK, self._asked)

    def _asked(self, frame: Frame) -> None:
        number = frame.words[0]
        if frame.extras["verb"] != "is_ready":
            self._channel.send(
                Kind.REPLY, [number], extras={"error": [int(Code.UNSUPPORTED), "workers answer is_ready alone"]}
            )
            return
        Thread(target=self._answer, args=(number,), name="is_ready", daemon=True).start()

    def _answer(self, number: int) -> None:
        said: dict[str, object]
        try:
            said = {"value": bool(self._backend.is_ready())}
        except Exception as error:
            code = error.code if isinstance(error, TritonError) else Code.INTERNAL
            said = {"error": [int(code), str(error) or type(error).__name__]}
        self._channel.send(Kind.REPLY, [number], extras=said)
