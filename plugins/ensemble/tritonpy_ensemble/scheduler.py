"""The ensemble scheduler. It has no instances and sends requests to other models."""

from __future__ import annotations

from functools import lru_cache

from tritonpy import InferRequest, now_ns
from tritonpy.metrics import ComputeTimes
from tritonpy.scheduling import Scheduler, SchedulerContext
from tritonpy_ensemble.ensemble_run import EnsembleRun, RunContext
from tritonpy_ensemble.inflight_limiter import InflightLimiter
from tritonpy_ensemble.members import Member, resolve_members
from tritonpy_ensemble.plan import Plan, make_plan

MAX_PLANS = 64  # cached plans, one per set of requested outputs


class EnsembleScheduler(Scheduler):
    """Serves models with `ensemble_scheduling` by an `EnsembleRun` per request. Thread-safe.

    `max_inflight_requests` limits the calls in flight of each step, over all requests.
    """

    uses_instances = False

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        steps, limit = (
            context.config.ensemble_scheduling.step,
            context.config.ensemble_scheduling.max_inflight_requests,
        )
        self._runs: dict[InferRequest, EnsembleRun] = {}
        limiters = {place: InflightLimiter(limit) for place in range(len(steps))} if limit else {}
        self._context = RunContext(context.engine, limiters, self._runs.pop)
        self._cached_plan = lru_cache(MAX_PLANS)(self._plan)

    def enqueue(self, request: InferRequest) -> None:
        """Start the steps of `request`. Raises a `TritonError` if a member is not ready."""
        names = request.outputs
        plan, members = self._cached_plan(None if names is None else frozenset(names))
        request.compute_times = work = request.compute_times or ComputeTimes()
        work.start_ns = now_ns()
        run = self._runs[request] = EnsembleRun(request, plan, members, work, self._context)
        run.begin()
        if request.cancelled:  # it may have been cancelled before the run existed
            run.cancel()

    def cancel(self, request: InferRequest) -> None:
        """Start no further step and cancel those in flight. The response follows when they end."""
        run = self._runs.get(request)
        if run is not None:
            run.cancel()

    def _plan(self, names: frozenset[str] | None) -> tuple[Plan, tuple[Member, ...]]:
        plan = make_plan(self.context.config, names)
        return plan, resolve_members(plan, self.context.engine)
