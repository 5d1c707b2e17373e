"""The responses of a decoupled call, as they come."""

from __future__ import annotations

from threading import Lock
from typing import Any

from .response import InferenceResponse


class ResponseIterator:
    """Waits for one response after the other; once all are there it can be gone through again.

    `stream` is the host's iterator over the responses with its method `cancel`.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_finished", "_lock", "_next", "_responses", "_stream")

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = Lock()  # one reader at a time waits for the stream
        self._responses: list[InferenceResponse] = []
        self._next = 0
        self._finished = False

    def __iter__(self) -> ResponseIterator:
        """Start again if everything was read; go on otherwise."""
        with self._lock:
            if self._finished and self._next == len(self._responses):
                self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response."""
        with self._lock:
            if not self._finished:
                self._receive()
            if self._next == len(self._responses):
                raise StopIteration("Iteration is done for the responses.")
            self._next += 1
            return self._responses[self._next - 1]

    def _receive(self) -> None:
        try:
            self._responses.append(next(self._stream))
        except StopIteration:
            self._finished = True

    def cancel(self) -> None:
        """Ask for an early end; responses that are on their way still come."""
        if not self._finished:
            self._stream.cancel()
