"""The response iterator of decoupled calls."""

from __future__ import annotations

from threading import Lock
from typing import Any

from .errors import TritonModelException
from .response import InferenceResponse

# Limits of the responses that are kept for another iteration. Otherwise long streams would fill the
# memory.
MAX_KEPT, MAX_KEPT_BYTES = 4096, 16 << 20


class ResponseIterator:
    """Waits for responses in order.

    All responses can be iterated again unless they exceed the limits. `stream` is the host's
    iterator of responses, with a method `cancel`.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = (
        "__weakref__",
        "_bytes",
        "_finished",
        "_keeps",
        "_lock",
        "_next",
        "_responses",
        "_stream",
    )

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = Lock()  # one thread at a time waits for the stream
        self._responses: list[InferenceResponse] = []
        self._bytes = 0
        self._keeps = True
        self._next = 0
        self._finished = False

    def __iter__(self) -> ResponseIterator:
        """Restart if everything was read, else continue.

        Raises `TritonModelException` if the start was not kept.
        """
        with self._lock:
            if self._finished and self._next == len(self._responses):
                if not self._keeps:
                    raise TritonModelException(
                        f"More than {MAX_KEPT} responses, or {MAX_KEPT_BYTES >> 20} MiB, "
                        "can only be iterated once."
                    )
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
            response = next(self._stream)
        except StopIteration:
            self._finished = True
            return
        self._bytes += sum(tensor._data.nbytes for tensor in response._outputs)
        self._keeps = (
            self._keeps and len(self._responses) < MAX_KEPT and self._bytes <= MAX_KEPT_BYTES
        )
        if not self._keeps:
            self._responses.clear()
            self._next = 0
        self._responses.append(response)

    def cancel(self) -> None:
        """Request an early end. Responses on their way still arrive."""
        if not self._finished:
            self._stream.cancel()
