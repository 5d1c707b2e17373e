"""A model's own readiness check, asked for while it may be executing."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Any

from . import model_object
from .coroutines import Coroutines
from .failure import describe
from .ipc import Frame, Kind
from .ipc.channel import Channel

_INTERNAL = 1  # Triton's code


class Readiness:
    """Calls `is_ready` beside `execute`, one check at a time, in a thread of its own."""

    def __init__(self, model: Any, channel: Channel, coroutines: Coroutines) -> None:
        self._model = model
        self._channel = channel
        self._coroutines = coroutines
        self._questions: SimpleQueue[int] = SimpleQueue()

    def start(self) -> None:
        """Answer questions from now on."""
        Thread(target=self._run, name="tritonpy-readiness", daemon=True).start()

    def asked(self, frame: Frame) -> None:
        """Take a question of the server, from the thread that reads."""
        self._questions.put(frame.words[0])

    def _run(self) -> None:
        while True:
            number = self._questions.get()
            try:
                reply: dict[str, Any] = {"value": model_object.is_ready(self._model, self._coroutines)}
            except BaseException as error:
                reply = {"error": [_INTERNAL, describe(error)]}
            self._channel.send(Kind.REPLY, [number], extras=reply)
