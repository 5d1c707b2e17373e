"""Where requests of clients are let in, on a server that is shared."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy.api.sharing import Sharing
from tritonpy.types import InferRequest, InferResponse, Sink


class _CountedSink(Sink):
    """Tells of the final answer, and passes everything on."""

    def __init__(self, sink: Sink, sharing: Sharing) -> None:
        self.sink = sink
        self._sharing = sharing

    def put(self, request: InferRequest, response: InferResponse) -> None:
        if response.final:
            self._sharing.ended(request)
        self.sink.put(request, response)

    def ready(self, request: InferRequest) -> bool:
        return self.sink.ready(request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self.sink.when_ready(request, callback)

    def cancelled(self, request: InferRequest) -> None:
        self.sink.cancelled(request)


class Admission:
    """Asks `sharing` before `hand_over` gives a request to its model."""

    def __init__(self, sharing: Sharing, hand_over: Callable[[InferRequest], None]) -> None:
        self._sharing = sharing
        self._hand_over = hand_over

    def enter(self, request: InferRequest) -> None:
        """Hand `request` over. Raises ResourceExhausted, and whatever its model refuses it with."""
        self._sharing.admit(request)
        sink = request.sink
        request.sink = _CountedSink(sink, self._sharing)
        try:
            self._hand_over(request)
        except BaseException:
            request.sink = sink
            self._sharing.ended(request)
            raise
