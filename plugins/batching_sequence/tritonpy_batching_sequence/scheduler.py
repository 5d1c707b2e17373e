"""The scheduler of sequences: a roster of them, and a strategy that makes batches of those that are ready."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import (
    UNBOUNDED,
    Batch,
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    QueueTimeout,
    Scheduler,
    SchedulerContext,
    Unavailable,
    batch_key,
)
from tritonpy_batching_sequence.batch_states import BatchStates, starts
from tritonpy_batching_sequence.controls import Controls
from tritonpy_batching_sequence.direct import Direct
from tritonpy_batching_sequence.hold import hold_of_environment
from tritonpy_batching_sequence.iterative import Iterations
from tritonpy_batching_sequence.lane import Decision, Lane
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.oldest import Oldest
from tritonpy_batching_sequence.roster import MissingStart, Roster
from tritonpy_batching_sequence.state import ImplicitStates
from tritonpy_batching_sequence.strategy import KeyOf, Strategy

_US = 1_000
_GONE = Unavailable("The instance that ran the request has ended, and with it what it knew of the request")


class SequenceScheduler(Scheduler):
    """Serves models with `sequence_batching`: the requests of a sequence run in order, all on one instance.

    With the strategy `oldest` the model's parameter `batch_policy` names the policy that cuts batches. The environment
    variables TRITONSERVER_DELAY_SCHEDULER and TRITONSERVER_BACKLOG_DELAY_SCHEDULER, for tests, hold batches back (`Hold`).
    """

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        config = context.config
        batching, rows = config.sequence_batching, max(1, config.max_batch_size)
        oldest = batching.HasField("oldest")
        self._states = ImplicitStates(config, context.directory)
        self._batch_states = BatchStates(self._states)
        self._iterations = Iterations() if batching.iterative_sequence else None
        self._controls = Controls(config)
        self._strategy = self._make_strategy(rows)
        self._roster = Roster(
            (batching.oldest.max_candidate_sequences if oldest else 0) or rows,
            batching.max_sequence_idle_microseconds * _US,
            one_at_a_time=oldest or bool(self._states) or self._iterations is not None,
        )
        self._hold = hold_of_environment(each_instance=oldest)
        self.prefetch = oldest and rows == 1  # the instance is chosen, and a batch that waits cannot grow
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Take the request; raises InvalidArgument where it belongs to no sequence, Unavailable where it starts one once stopped."""
        name = self.context.name
        if request.batch_size > 1:
            raise InvalidArgument(
                f"inference request to model '{name}' must specify batch-size 1 due to requirements of sequence batcher"
            )
        if self._iterations is not None:
            self._iterations.begin(request, self._roster.live)
        sequence = request.sequence
        if sequence is None:
            raise InvalidArgument(
                f"inference request to model '{name}' must specify a non-zero or non-empty correlation ID"
            )
        if self._stopped and sequence.start:
            raise Unavailable("Server is stopping, scheduler for model has stopped accepting new inference requests")
        try:
            self._roster.add(request, sequence.id, sequence.start, sequence.end, request.queued_ns)
        except MissingStart:
            raise self._missing_start(sequence.id) from None

    def ready(self, instance: int, now_ns: int) -> bool | int:
        """Say whether the sequences of `instance` make a batch now, or when at the latest if nothing comes."""
        self._roster.look(now_ns)
        lane = self._runnable(instance)
        if lane is None:
            return False
        decision = self._decide(lane, now_ns)
        return decision if type(decision) is int else True

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Cut the next batch: a request of each sequence that was chosen."""
        self._roster.look(now_ns)
        lane = self._runnable(instance)
        if lane is None:
            return None
        chosen = self._decide(lane, now_ns)
        return None if isinstance(chosen, int) else self._batch(self._strategy.rows(lane, chosen[:limit]))

    def cancel(self, request: InferRequest) -> None:
        """Drop `request`, if it waits here, and what cannot run without it: its sequence ends with the request before."""
        if request.answered:
            self._roster.forget(request)
            return
        for dropped in self._roster.drop(request):
            dropped.respond(InferResponse.failed(dropped, Cancelled("Request cancelled")))

    def expire(self, now_ns: int) -> int | None:
        """End sequences that are idle for too long; refuse those that waited too long for a seat."""
        for request in self._roster.expire(now_ns):
            text = "timeout of the corresponding sequence has been expired"
            request.respond(InferResponse.failed(request, QueueTimeout(text)))
        return self._roster.due(now_ns)

    def released(self, request: InferRequest, reschedule: bool) -> None:
        """Let the next request of its sequence run, or give the seat to another one."""
        sequence = self._roster.of(request)
        if sequence is not None and self._states:
            self._batch_states.take_back(sequence, request)
        if self._iterations is None:
            self._roster.release(request)
            if reschedule:
                super().released(request, reschedule)
        elif reschedule:
            self._iterate(request)
        elif self._roster.release(request) is sequence is not None:
            self._roster.end(sequence)

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Seat sequences at `instances` from now on; what began at another one ends there."""
        self._roster.change(instances)

    def holds(self, instance: int) -> bool:
        """Say whether live sequences are bound to `instance`."""
        return instance in self._roster.lanes

    def lost(self, instance: int) -> None:
        """End the sequences of `instance`, unless the server keeps their states: what the model remembered of them is gone."""
        if self._states:
            return
        for request in self._roster.lose(instance):
            error = self._missing_start(request.sequence.id) if self._iterations is None and request.sequence else _GONE
            request.respond(InferResponse.failed(request, error))

    def restored(self, instance: int) -> None:
        """Seat sequences at `instance` as at any other again."""
        self._roster.restore(instance)

    def take_back(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Let requests wait again in their sequences: those that start one run, the others end with what was lost."""
        if self._states or self._iterations is not None:  # their execution may have begun with a state that is used up
            return requests
        return [request for request in reversed(requests) if self._roster.put_back(request) is None]

    def is_live(self) -> bool:
        """Say whether a sequence has begun and not ended."""
        return bool(self._roster.live)

    def pending(self) -> Sequence[InferRequest]:
        """The requests that wait, sequence by sequence."""
        return tuple(self._roster.pending())

    def stop(self) -> None:
        """Start no more sequences; those that live may go on to their end."""
        self._stopped = True

    def finish(self) -> None:
        """End every sequence with the requests that it has: those that wait for a seat get one."""
        for sequence in list(self._roster.live.values()):
            self._roster.end(sequence)

    def _missing_start(self, id: int | str) -> InvalidArgument:  # noqa: A002
        return InvalidArgument(
            f"inference request for sequence {id} to model '{self.context.name}' must specify the START flag on the first "
            "request of the sequence"
        )

    def _make_strategy(self, rows: int) -> Strategy:
        config, key_of = self.context.config, self._key_of()
        batching = config.sequence_batching
        if batching.HasField("oldest"):
            named = config.parameters
            name = named["batch_policy"].string_value if "batch_policy" in named else "preferred"
            return Oldest(self.context.policy(name), rows, key_of)
        direct = batching.direct
        return Direct(rows, direct.max_queue_delay_microseconds * _US, direct.minimum_slot_utilization, key_of)

    def _runnable(self, instance: int) -> Lane | None:
        lane = self._roster.lanes.get(instance)
        if lane is None or not lane.ready or (self._hold is not None and self._hold.holds(lane, self._roster)):
            return None
        return lane

    def _decide(self, lane: Lane, now_ns: int) -> Decision:
        """Ask the strategy, but no second time while it would say the same: an instance asks several times for one batch."""
        decision = lane.decision
        if decision is None or (type(decision) is int and now_ns >= decision):
            decision = lane.decision = self._strategy.choose(lane, now_ns)
        return decision

    def _key_of(self) -> KeyOf | None:
        by_request, states = batch_key(self.context.config), self._states
        if not states:
            return None if by_request is None else lambda sequence: by_request(sequence.waiting[0])
        return lambda sequence: (
            None if by_request is None else by_request(sequence.waiting[0]),
            states.shapes(None if starts(sequence.waiting[0]) else sequence.state),
        )

    def _iterate(self, request: InferRequest) -> None:
        Iterations.again(request)
        self._roster.put_back(request)
        if request.cancelled:
            self.cancel(request)

    def _batch(self, rows: Sequence[LiveSequence | None]) -> Batch:
        slots = [None if sequence is None else self._roster.pull(sequence) for sequence in rows]
        batch = Batch([request for request in slots if request is not None])
        if len(batch.requests) < len(slots):
            batch.slots = slots
        try:
            self._add_what_models_are_told(batch, rows, slots)
        except Exception:
            for request in batch.requests:  # whoever answers for the failure finds them among those that wait
                self._roster.put_back(request)
            raise
        return batch

    def _add_what_models_are_told(
        self, batch: Batch, rows: Sequence[LiveSequence | None], slots: Sequence[InferRequest | None]
    ) -> None:
        if self._controls:
            batch.controls = self._controls.tensors(slots)
        if self._states:
            self._batch_states.add(batch, rows, slots)
