"""One route at work: where its requests go, and what became of them."""

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
    Sink,
    TritonError,
    Unavailable,
    now_ns,
)
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.balance import Balance
from tritonpy_traffic.canary import CanaryRun, CanaryState
from tritonpy_traffic.routed_sink import RoutedSink
from tritonpy_traffic.sequences import Sequences
from tritonpy_traffic.shadowing import Copy, Shadowing
from tritonpy_traffic.spec import RouteSpec, Target, WeightedTarget
from tritonpy_traffic.tally import Tallies, Tally

log = logging.getLogger("tritonpy.traffic")

_UNKNOWN = "Request for unknown model"


class Route:
    """A route. `changed` is called, under its lock, where it changed by itself: it must not block."""

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
        self.shadowing: Shadowing | None = None
        self.tallies = Tallies()
        self.lock = threading.Lock()
        self._engine = engine
        self._copies = copies
        self._changed = changed
        self._sequences = Sequences(sequence_idle_ns)
        self._balance: Balance

    def configure(self, spec: RouteSpec, revision: int, run: CanaryRun | None = None) -> None:
        """Follow `spec` from the next request on. A canary that runs goes on where it is the same; `run` is one that is taken up again."""
        with self.lock:
            before = None if self.revision == 0 else self.spec
            if run is None and spec.canary is not None:
                same = before is not None and before.canary == spec.canary and before.targets[0] == spec.targets[0]
                run = self.run if same and self.run is not None and self.run.live else CanaryRun(spec.canary, now_ns())
            if spec.shadow is None:
                self.shadowing = None
            elif before is None or before.shadow != spec.shadow:
                self.shadowing = Shadowing(self.name, spec.shadow, self._engine, self._copies)
            self.run = run
            self._follow(spec, revision)

    def _follow(self, spec: RouteSpec, revision: int) -> None:
        self.spec, self.revision = spec, revision
        self._balance = Balance(self.name, spec)

    def take(self, request: InferRequest) -> None:
        """Hand `request` to the first of its targets that takes it. Raises what it is refused with; then the request is as it was."""
        now = now_ns()
        copy = None if self.shadowing is None else self.shadowing.copy(request)
        try:
            self._hand_over(request, copy, now)
        except BaseException:
            if copy is not None:
                copy.forget()
            raise

    def _hand_over(self, request: InferRequest, copy: Copy | None, now: int) -> None:
        refused: RoutedSink | None = None  # of a canary
        refusal: TritonError = NotFound("")
        for target in self._targets(request, now):
            routed = self._booked(target, request.sink, copy, now)
            request.sink = routed
            request.model_name, request.model_version = target.model, target.number
            try:
                self._engine.infer(request)
            except BaseException as error:
                self._take_back(request, routed)
                if not isinstance(error, TritonError) or not self._goes_on(error, routed):
                    raise
                refusal, refused = error, refused if routed.run is None else routed
            else:
                self._taken(request, target, routed, refused)
                return
        if isinstance(refusal, (NotFound, InvalidArgument)):
            refusal = type(refusal)(f"Request for unknown model: '{self.name}' is not found")
        elif refusal.message.startswith(_UNKNOWN):  # which target it was, clients need not know
            refusal = Unavailable(f"{_UNKNOWN}: '{self.name}' is not at ready state")
        raise refusal

    def _targets(self, request: InferRequest, now: int) -> list[Target]:
        with self.lock:
            place = None if request.sequence is None else self._sequences.find(request.sequence, now)
            if place is not None:
                return [place]
            key = self._balance.key(request)
            targets, run = self._balance.targets(key), self.run
            if run is None or not run.live:
                return targets
            if not self._balance.wants_canary(key, run.share) or not run.ledger.has_room():
                return targets
            return [run.spec.target, *targets]

    def _booked(self, target: Target, sink: Sink, copy: Copy | None, now: int) -> RoutedSink:
        with self.lock:
            routed = RoutedSink(self, sink, self.tallies.of(target), now, copy)
            run = self.run
            if run is not None and run.live and target.label == run.spec.label:
                routed.run, routed.ledger = run, run.ledger
                run.ledger.enter()
        return routed

    def _take_back(self, request: InferRequest, routed: RoutedSink) -> None:
        request.sink, request.model_name, request.model_version = routed.sink, self.name, -1
        if routed.ledger is not None:
            with self.lock:
                routed.ledger.leave(answered=False, failed=False)

    def _goes_on(self, error: TritonError, routed: RoutedSink) -> bool:
        """Say whether another target is asked: where this one is not there, and where it is only being tried."""
        if isinstance(error, (NotFound, Unavailable, InvalidArgument)) and not self._serves(routed.tally.target):
            self._skipped(routed.tally, error)
            routed.run = None  # what is not there is not worse either
            return True
        if routed.run is not None and isinstance(error, Unavailable) and error.retry_after_s is not None:
            self._skipped(routed.tally, error)
            routed.run = None  # it is being loaded: the primary answers until it is there
            return True
        return routed.run is not None and not isinstance(error, (Cancelled, ResourceExhausted))

    def _serves(self, target: Target) -> bool:
        try:
            self._engine.model_config(target.model, target.number)
        except TritonError:
            return False
        return True

    def _skipped(self, tally: Tally, error: TritonError) -> None:
        with self.lock:
            tally.skipped += 1
            first, tally.missing = not tally.missing, True
        if first:
            log.warning("route %s: target %s is skipped: %s", self.name, tally.target.label, error.message)

    def _taken(self, request: InferRequest, target: Target, routed: RoutedSink, refused: RoutedSink | None) -> None:
        if request.sequence is None and refused is None and not routed.tally.missing:
            return
        with self.lock:
            if request.sequence is not None:
                self._sequences.note(request.sequence, target, routed.began_ns)
            if routed.tally.missing:
                routed.tally.missing = False
                log.info("route %s: target %s serves again", self.name, target.label)
            if refused is not None and refused.run is not None:  # the primary takes what the canary did not
                refused.tally.add(0, failed=True)
                refused.run.answered(0, failed=True)
                self._look(refused.run, now_ns())

    def ended(self, routed: RoutedSink) -> None:
        """Take note of the end of a request that a target took."""
        now = now_ns()
        elapsed, failed, cancelled = now - routed.began_ns, routed.failed, routed.cancelled_by_client
        with self.lock:
            if not cancelled:
                routed.tally.add(elapsed, failed)
            if routed.ledger is not None:
                routed.ledger.leave(answered=not cancelled, failed=failed and not cancelled)
            run = self.run
            if run is None or not run.live or cancelled:
                return
            if routed.run is run:
                run.answered(elapsed, failed=failed)
            else:
                run.ledger.answers += 1
                if routed.tally.target.label == self.spec.targets[0].label:
                    run.primary_answered(elapsed, failed=failed)
            if now >= run.look_ns or (failed and routed.run is run):
                self._look(run, now)

    def _look(self, run: CanaryRun, now: int) -> None:
        if run is not self.run or not run.look(now):
            return
        if run.state is CanaryState.ROLLED_BACK:
            self._rolled_back(run)
        elif run.state is CanaryState.PROMOTED:
            self._promoted(run)
        elif run.state is CanaryState.WAITING:
            log.info("route %s: canary %s is through and waits to be promoted", self.name, run.spec.label)
        else:
            log.info(
                "route %s: canary %s at step %d of %d, share %g",
                self.name, run.spec.label, run.step + 1, len(run.spec.steps), run.share,
            )  # fmt: skip
        self._changed(self)

    def _rolled_back(self, run: CanaryRun) -> None:
        self.tallies.rollbacks += 1
        log.warning("route %s: canary %s is rolled back: %s", self.name, run.spec.label, run.reason)

    def _promoted(self, run: CanaryRun) -> None:
        primary, *others = self.spec.targets
        promoted = WeightedTarget(run.spec.model, run.spec.version, primary.weight)
        self.tallies.promotions += 1
        self._follow(msgspec.structs.replace(self.spec, targets=[promoted, *others], canary=None), self.revision)
        log.info("route %s: canary %s is promoted, %s goes", self.name, run.spec.label, primary.label)

    def promote(self) -> bool:
        """Put the canary in the place of the primary; returns whether there was one on its way."""
        with self.lock:
            run = self.run
            if run is None or not run.live:
                return False
            run.state = CanaryState.PROMOTED
            self._promoted(run)
            self._changed(self)
        return True

    def roll_back(self) -> bool:
        """Give the canary no further requests; returns whether there was one on its way."""
        with self.lock:
            run = self.run
            if run is None or not run.live:
                return False
            run.roll_back("asked for")
            self._rolled_back(run)
            self._changed(self)
        return True

    def look(self) -> None:
        """Judge the canary now: nobody may have asked for a while."""
        with self.lock:
            if self.run is not None:
                self._look(self.run, now_ns())
