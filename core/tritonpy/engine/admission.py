"""Admission of client requests on a server with a sharing policy."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy.api.sharing import Sharing
from tritonpy.types import InferRequest, InferResponse, Sink


class _CountedSink(Sink):
    """A sink that reports the final response to `sharing` and forwards all responses."""

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
    """Admits client requests by the policy `sharing` and passes them to `infer`."""

    def __init__(self, sharing: Sharing, infer: Callable[[InferRequest], None]) -> None:
        self._sharing = sharing
        self._infer = infer

    def enter(self, request: InferRequest) -> None:
        """Admit `request` and send it to its model.

        Raises ResourceExhausted, and the errors of `infer`.
        """
        self._sharing.admit(request)
        sink = request.sink
        request.sink = _CountedSink(sink, self._sharing)
        try:
            self._infer(request)
        except BaseException:
            request.sink = sink
            self._sharing.ended(request)
            raise
