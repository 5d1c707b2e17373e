"""The scheduler of ensembles: it has no instances, and hands its requests on to other models."""

from __future__ import annotations

from functools import lru_cache

from tritonpy import InferRequest, Scheduler, SchedulerContext, Work, now_ns
from tritonpy_ensemble.gate import Gate
from tritonpy_ensemble.members import Member, members_of
from tritonpy_ensemble.plan import Plan, make_plan
from tritonpy_ensemble.run import Run, Surroundings

MOST_PLANS = 64  # kept, one for each choice of outputs that clients make


class EnsembleScheduler(Scheduler):
    """Serves models with `ensemble_scheduling`: makes a run of each request. May be used from any thread, without a lock.

    `max_inflight_requests` bounds how many calls each step has open, of all requests together.
    """

    uses_instances = False

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        steps, most = context.config.ensemble_scheduling.step, context.config.ensemble_scheduling.max_inflight_requests
        self._runs: dict[InferRequest, Run] = {}
        gates = {place: Gate(most) for place in range(len(steps))} if most else {}
        self._around = Surroundings(context.engine, gates, self._runs.pop)
        self._planned = lru_cache(MOST_PLANS)(self._plan)

    def enqueue(self, request: InferRequest) -> None:
        """Begin the steps of `request`; raises a TritonError where a member does not serve."""
        wanted = request.outputs
        plan, members = self._planned(None if wanted is None else frozenset(wanted))
        request.work = work = request.work or Work()
        work.start_ns = now_ns()
        run = self._runs[request] = Run(request, plan, members, work, self._around)
        run.begin()
        if request.cancelled:  # perhaps before there was a run to cancel
            run.cancel()

    def cancel(self, request: InferRequest) -> None:
        """Begin no further step of `request`, and cancel those that are under way; it is answered when they have ended."""
        run = self._runs.get(request)
        if run is not None:
            run.cancel()

    def _plan(self, wanted: frozenset[str] | None) -> tuple[Plan, tuple[Member, ...]]:
        plan = make_plan(self.context.config, wanted)
        return plan, members_of(plan, self.context.engine)
