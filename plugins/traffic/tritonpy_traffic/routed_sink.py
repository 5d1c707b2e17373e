"""The sink of a request that a route sent somewhere: tells the route how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import Cancelled, InferRequest, InferResponse, Sink

if TYPE_CHECKING:
    from tritonpy_traffic.canary import CanaryRun, Ledger
    from tritonpy_traffic.route import Route
    from tritonpy_traffic.shadowing import Copy
    from tritonpy_traffic.tally import Tally


class RoutedSink(Sink):
    """Passes everything on to the sink of the caller; answers carry the name that the caller asked for.

    `run` and `ledger` are those of the canary that the request tries, `copy` is the request's shadow copy.
    """

    __slots__ = ("began_ns", "cancelled_by_client", "copy", "failed", "ledger", "route", "run", "sink", "tally")

    def __init__(self, route: Route, sink: Sink, tally: Tally, began_ns: int, copy: Copy | None) -> None:
        self.route = route
        self.sink = sink
        self.tally = tally
        self.began_ns = began_ns
        self.copy = copy
        self.run: CanaryRun | None = None
        self.ledger: Ledger | None = None
        self.failed = self.cancelled_by_client = False

    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Take an answer."""
        response.model_name = self.route.name
        if response.error is not None:
            self.failed = True
            self.cancelled_by_client = isinstance(response.error, Cancelled)
        if response.final:
            self.route.ended(self)
        self.sink.put(request, response)
        if self.copy is not None:
            self.copy.keep(response)

    def ready(self, request: InferRequest) -> bool:
        """Say what the caller's sink says."""
        return self.sink.ready(request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Ask the caller's sink."""
        self.sink.when_ready(request, callback)

    def cancelled(self, request: InferRequest) -> None:
        """Tell the caller's sink."""
        self.sink.cancelled(request)
