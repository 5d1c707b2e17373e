"""A live route: request routing, canary control and counters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from tritonpy import (
    Cancelled,
    Engine,
    InferRequest,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    TritonError,
    Unavailable,
    now_ns,
)
from tritonpy.frontend import Sink
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.canary import CanaryRun, CanaryState
from tritonpy_traffic.counters import RouteCounters, TargetCounters
from tritonpy_traffic.routed_sink import RoutedSink
from tritonpy_traffic.sequence_affinity import SequenceAffinity
from tritonpy_traffic.shadow_traffic import ShadowCopy, ShadowTraffic
from tritonpy_traffic.spec import RouteSpec, Target, WeightedTarget
from tritonpy_traffic.target_selector import TargetSelector

log = logging.getLogger("tritonpy.traffic")

_UNKNOWN = "Request for unknown model"


class Route:
    """A route: sends requests to its targets, runs its canary, and counts responses.

    `changed(route)` is called, with the route's lock held, when a canary changes the route or an
    operator promotes it or rolls it back. It must not block.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        copies: BackgroundThread,
        sequence_idle_ns: int,
        changed: Callable[[Route], None],
    ) -> None:
        self.name = name
        self.revision = 0
        self.spec: RouteSpec
        self.run: CanaryRun | None = None
        self.shadow_traffic: ShadowTraffic | None = None
        self.counters = RouteCounters()
        self.lock = threading.Lock()
        self._engine = engine
        self._shadow_thread = copies
        self._changed = changed
        self._sequences = SequenceAffinity(sequence_idle_ns)
        self._selector: TargetSelector

    def configure(self, spec: RouteSpec, revision: int, run: CanaryRun | None = None) -> None:
        """Apply `spec` from the next request on.

        If the canary is unchanged and live, its run continues. `run` is a restored run, if any.
        """
        with self.lock:
            before = None if self.revision == 0 else self.spec
            if run is None and spec.canary is not None:
                same = (
                    before is not None
                    and before.canary == spec.canary
                    and before.targets[0] == spec.targets[0]
                )
                run = (
                    self.run
                    if same and self.run is not None and self.run.is_live
                    else CanaryRun(spec.canary, now_ns())
                )
            if spec.shadow is None:
                self.shadow_traffic = None
            elif before is None or before.shadow != spec.shadow:
                self.shadow_traffic = ShadowTraffic(
                    self.name, spec.shadow, self._engine, self._shadow_thread
                )
            self.run = run
            self._apply(spec, revision)

    def _apply(self, spec: RouteSpec, revision: int) -> None:
        self.spec, self.revision = spec, revision
        self._selector = TargetSelector(self.name, spec)

    def infer(self, request: InferRequest) -> None:
        """Send `request` to the first of its targets that accepts it.

        If none does, raises the error of the last target and leaves the request unchanged.
        """
        now = now_ns()
        copy = None if self.shadow_traffic is None else self.shadow_traffic.copy(request)
        try:
            self._infer(request, copy, now)
        except BaseException:
            if copy is not None:
                copy.discard()
            raise

    def _infer(self, request: InferRequest, copy: ShadowCopy | None, now: int) -> None:
        refused: RoutedSink | None = None  # sink of a canary that rejected the request
        refusal: TritonError = NotFound("")
        for target in self._targets(request, now):
            routed = self._make_sink(target, request.sink, copy, now)
            request.sink = routed
            request.model_name, request.model_version = target.model, target.number
            try:
                self._engine.infer(request)
            except BaseException as error:
                self._restore_request(request, routed)
                if not isinstance(error, TritonError) or not self._should_try_next(error, routed):
                    raise
                refusal, refused = error, refused if routed.run is None else routed
            else:
                self._record_accepted(request, target, routed, refused)
                return
        if isinstance(refusal, (NotFound, InvalidArgument)):
            refusal = type(refusal)(f"Request for unknown model: '{self.name}' is not found")
        elif refusal.message.startswith(_UNKNOWN):  # hide the target's name from clients
            refusal = Unavailable(f"{_UNKNOWN}: '{self.name}' is not at ready state")
        raise refusal

    def _targets(self, request: InferRequest, now: int) -> list[Target]:
        with self.lock:
            pinned = (
                None if request.sequence is None else self._sequences.find(request.sequence, now)
            )
            if pinned is not None:
                return [pinned]
            key = self._selector.key(request)
            targets, run = self._selector.targets(key), self.run
            if run is None or not run.is_live:
                return targets
            if (
                not self._selector.is_canary_request(key, run.share)
                or not run.failure_budget.can_reserve()
            ):
                return targets
            return [run.spec.target, *targets]

    def _make_sink(
        self, target: Target, sink: Sink, copy: ShadowCopy | None, now: int
    ) -> RoutedSink:
        with self.lock:
            routed = RoutedSink(self, sink, self.counters.of(target), now, copy)
            run = self.run
            if run is not None and run.is_live and target.label == run.spec.label:
                routed.run, routed.failure_budget = run, run.failure_budget
                run.failure_budget.begin_request()
        return routed

    def _restore_request(self, request: InferRequest, routed: RoutedSink) -> None:
        request.sink, request.model_name, request.model_version = routed.sink, self.name, -1
        if routed.failure_budget is not None:
            with self.lock:
                routed.failure_budget.end_request(counted=False, failed=False)

    def _should_try_next(self, error: TritonError, routed: RoutedSink) -> bool:
        """Return whether to try the next target, because this one is a canary or not ready."""
        if isinstance(error, (NotFound, Unavailable, InvalidArgument)) and not self._serves(
            routed.target_counters.target
        ):
            self._record_skip(routed.target_counters, error)
            routed.run = None  # a missing canary does not count as a failure
            return True
        if (
            routed.run is not None
            and isinstance(error, Unavailable)
            and error.retry_after_s is not None
        ):
            self._record_skip(routed.target_counters, error)
            routed.run = None  # it is loading: the primary serves until it is ready
            return True
        return routed.run is not None and not isinstance(error, (Cancelled, ResourceExhausted))

    def _serves(self, target: Target) -> bool:
        try:
            self._engine.model_config(target.model, target.number)
        except TritonError:
            return False
        return True

    def _record_skip(self, target_counters: TargetCounters, error: TritonError) -> None:
        with self.lock:
            target_counters.skipped += 1
            first, target_counters.missing = not target_counters.missing, True
        if first:
            log.warning(
                "route %s: skipping target %s: %s",
                self.name,
                target_counters.target.label,
                error.message,
            )

    def _record_accepted(
        self, request: InferRequest, target: Target, routed: RoutedSink, refused: RoutedSink | None
    ) -> None:
        if request.sequence is None and refused is None and not routed.target_counters.missing:
            return
        with self.lock:
            if request.sequence is not None:
                self._sequences.record(request.sequence, target, routed.began_ns)
            if routed.target_counters.missing:
                routed.target_counters.missing = False
                log.info("route %s: target %s serves again", self.name, target.label)
            # Another target accepted what the canary rejected: count a failure of the canary.
            if refused is not None and refused.run is not None:
                refused.target_counters.add(0, failed=True)
                refused.run.record_response(0, failed=True)
                self._evaluate(refused.run, now_ns())

    def finished(self, routed: RoutedSink) -> None:
        """Record the end of an accepted request."""
        now = now_ns()
        elapsed, failed, cancelled = (
            now - routed.began_ns,
            routed.failed,
            routed.cancelled_by_client,
        )
        with self.lock:
            if not cancelled:
                routed.target_counters.add(elapsed, failed)
            if routed.failure_budget is not None:
                routed.failure_budget.end_request(
                    counted=not cancelled, failed=failed and not cancelled
                )
            run = self.run
            if run is None or not run.is_live or cancelled:
                return
            if routed.run is run:
                run.record_response(elapsed, failed=failed)
            else:
                run.failure_budget.responses += 1
                if routed.target_counters.target.label == self.spec.targets[0].label:
                    run.record_primary_response(elapsed, failed=failed)
            if now >= run.next_evaluation_ns or (failed and routed.run is run):
                self._evaluate(run, now)

    def _evaluate(self, run: CanaryRun, now: int) -> None:
        if run is not self.run or not run.evaluate(now):
            return
        if run.state is CanaryState.ROLLED_BACK:
            self._rolled_back(run)
        elif run.state is CanaryState.PROMOTED:
            self._promoted(run)
        elif run.state is CanaryState.WAITING:
            log.info(
                "route %s: canary %s has completed its steps and waits for promotion",
                self.name,
                run.spec.label,
            )
        else:
            log.info(
                "route %s: canary %s at step %d of %d, share %g",
                self.name, run.spec.label, run.step + 1, len(run.spec.steps), run.share,
            )  # fmt: skip
        self._changed(self)

    def _rolled_back(self, run: CanaryRun) -> None:
        self.counters.rollbacks += 1
        log.warning(
            "route %s: canary %s was rolled back: %s", self.name, run.spec.label, run.reason
        )

    def _promoted(self, run: CanaryRun) -> None:
        primary, *others = self.spec.targets
        promoted = WeightedTarget(run.spec.model, run.spec.version, primary.weight)
        self.counters.promotions += 1
        self._apply(
            msgspec.structs.replace(self.spec, targets=[promoted, *others], canary=None),
            self.revision,
        )
        log.info(
            "route %s: canary %s was promoted, replacing %s",
            self.name,
            run.spec.label,
            primary.label,
        )

    def promote(self) -> bool:
        """Replace the primary with the canary. Return whether there was a live canary."""
        with self.lock:
            run = self.run
            if run is None or not run.is_live:
                return False
            run.state = CanaryState.PROMOTED
            self._promoted(run)
            self._changed(self)
        return True

    def roll_back(self) -> bool:
        """Stop sending requests to the canary. Return whether there was a live canary."""
        with self.lock:
            run = self.run
            if run is None or not run.is_live:
                return False
            run.roll_back("requested")
            self._rolled_back(run)
            self._changed(self)
        return True

    def evaluate(self) -> None:
        """Evaluate the canary now. Otherwise only responses trigger an evaluation."""
        with self.lock:
            if self.run is not None:
                self._evaluate(self.run, now_ns())
