"""A model's readiness check, concurrent with its executions."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Any

from . import model_object
from .coroutines import Coroutines
from .failure import describe_error
from .ipc import Frame, Kind
from .ipc.channel import Channel

_INTERNAL = 1  # Triton's code


class Readiness:
    """Calls `is_ready` concurrently with `execute`, one check at a time, in its own thread."""

    def __init__(self, model: Any, channel: Channel, coroutines: Coroutines) -> None:
        self._model = model
        self._channel = channel
        self._coroutines = coroutines
        self._queries: SimpleQueue[int] = SimpleQueue()

    def start(self) -> None:
        """Start the thread."""
        Thread(target=self._run, name="tritonpy-readiness", daemon=True).start()

    def enqueue(self, frame: Frame) -> None:
        """Queue a query of the server. Called by the reading thread."""
        self._queries.put(frame.words[0])

    def _run(self) -> None:
        while True:
            number = self._queries.get()
            try:
                reply: dict[str, Any] = {
                    "value": model_object.is_ready(self._model, self._coroutines)
                }
            except BaseException as error:
                reply = {"error": [_INTERNAL, describe_error(error)]}
            self._channel.send(Kind.QUERY_RESULT, [number], extras=reply)
