"""The sink of a routed request, which reports its end to the route."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import Cancelled, InferRequest, InferResponse
from tritonpy.frontend import Sink

if TYPE_CHECKING:
    from tritonpy_traffic.canary import CanaryRun, FailureBudget
    from tritonpy_traffic.counters import TargetCounters
    from tritonpy_traffic.route import Route
    from tritonpy_traffic.shadow_traffic import ShadowCopy


class RoutedSink(Sink):
    """Forwards everything to the caller's sink. Responses contain the route's name.

    `run` and `failure_budget` are those of the canary, if the request is sent to it. `copy` is the
    shadow copy of the request, if any.
    """

    __slots__ = (
        "began_ns",
        "cancelled_by_client",
        "copy",
        "failed",
        "failure_budget",
        "route",
        "run",
        "sink",
        "target_counters",
    )

    def __init__(
        self,
        route: Route,
        sink: Sink,
        target_counters: TargetCounters,
        began_ns: int,
        copy: ShadowCopy | None,
    ) -> None:
        self.route = route
        self.sink = sink
        self.target_counters = target_counters
        self.began_ns = began_ns
        self.copy = copy
        self.run: CanaryRun | None = None
        self.failure_budget: FailureBudget | None = None
        self.failed = self.cancelled_by_client = False

    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Forward a response and record it."""
        response.model_name = self.route.name
        if response.error is not None:
            self.failed = True
            self.cancelled_by_client = isinstance(response.error, Cancelled)
        if response.final:
            self.route.finished(self)
        self.sink.put(request, response)
        if self.copy is not None:
            self.copy.record(response)

    def ready(self, request: InferRequest) -> bool:
        """Return the state of the caller's sink."""
        return self.sink.ready(request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Forward to the caller's sink."""
        self.sink.when_ready(request, callback)

    def cancelled(self, request: InferRequest) -> None:
        """Forward to the caller's sink."""
        self.sink.cancelled(request)
