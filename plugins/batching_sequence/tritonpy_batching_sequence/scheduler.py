"""The sequence scheduler: a table of sequences and a strategy that selects batches."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import (
    Batch,
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    QueueTimeout,
    Unavailable,
)
from tritonpy.scheduling import UNBOUNDED, Scheduler, SchedulerContext, batch_key
from tritonpy_batching_sequence.batch_states import BatchStates, is_start
from tritonpy_batching_sequence.controls import Controls
from tritonpy_batching_sequence.direct import Direct
from tritonpy_batching_sequence.iterative import Iterations
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.oldest import Oldest
from tritonpy_batching_sequence.scheduler_delay import delay_from_environment
from tritonpy_batching_sequence.sequence_table import MissingStart, SequenceTable
from tritonpy_batching_sequence.slot_group import Decision, SlotGroup
from tritonpy_batching_sequence.state import ImplicitStates
from tritonpy_batching_sequence.strategy import KeyOf, Strategy

_US = 1_000
_INSTANCE_LOST = Unavailable(
    "The instance that ran the request has ended, and its state of the request is lost"
)


class SequenceScheduler(Scheduler):
    """Serves models with `sequence_batching`. A sequence's requests run in order on one instance.

    With the strategy `oldest`, the model's parameter `batch_policy` names the batch policy. The
    environment variables TRITONSERVER_DELAY_SCHEDULER and TRITONSERVER_BACKLOG_DELAY_SCHEDULER
    delay batches in tests (`SchedulerDelay`).
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
        self._table = SequenceTable(
            (batching.oldest.max_candidate_sequences if oldest else 0) or rows,
            batching.max_sequence_idle_microseconds * _US,
            one_at_a_time=oldest or bool(self._states) or self._iterations is not None,
        )
        self._delay = delay_from_environment(each_instance=oldest)
        # Prefetching costs nothing: the instance is fixed, and batches of one row cannot grow.
        self.prefetch = oldest and rows == 1
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Add `request` to its sequence.

        Raises `InvalidArgument` if it belongs to no sequence, `Unavailable` if it starts one after
        `stop`.
        """
        name = self.context.name
        if request.batch_size > 1:
            raise InvalidArgument(
                f"inference request to model '{name}' must specify batch-size 1 due to "
                "requirements of sequence batcher"
            )
        if self._iterations is not None:
            self._iterations.begin(request, self._table.live)
        sequence = request.sequence
        if sequence is None:
            raise InvalidArgument(
                f"inference request to model '{name}' must specify a non-zero or non-empty "
                "correlation ID"
            )
        if self._stopped and sequence.start:
            raise Unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference "
                "requests"
            )
        try:
            self._table.add(request, sequence.id, sequence.start, sequence.end, request.queued_ns)
        except MissingStart:
            raise self._missing_start(sequence.id) from None

    def ready(self, instance: int, now_ns: int) -> bool | int:
        """Return whether `instance` can run a batch now, or the latest time (ns) it can."""
        self._table.stamp(now_ns)
        group = self._runnable(instance)
        if group is None:
            return False
        decision = self._decide(group, now_ns)
        return decision if type(decision) is int else True

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Return the next batch: one request of each selected sequence."""
        self._table.stamp(now_ns)
        group = self._runnable(instance)
        if group is None:
            return None
        chosen = self._decide(group, now_ns)
        return (
            None
            if isinstance(chosen, int)
            else self._batch(self._strategy.rows(group, chosen[:limit]))
        )

    def cancel(self, request: InferRequest) -> None:
        """Cancel a waiting request and all later requests of its sequence."""
        if request.finished:
            self._table.remove(request)
            return
        for dropped in self._table.cancel(request):
            dropped.respond(InferResponse.failed(dropped, Cancelled("Request cancelled")))

    def expire(self, now_ns: int) -> int | None:
        """End idle sequences and reject sequences that waited too long for a slot."""
        for request in self._table.expire(now_ns):
            text = "timeout of the corresponding sequence has been expired"
            request.respond(InferResponse.failed(request, QueueTimeout(text)))
        return self._table.due(now_ns)

    def released(self, request: InferRequest, reschedule: bool) -> None:
        """Make the next request of the finished request's sequence ready, or release its slot."""
        sequence = self._table.sequence_of(request)
        if sequence is not None and self._states:
            self._batch_states.collect(sequence, request)
        if self._iterations is None:
            self._table.release(request)
            if reschedule:
                super().released(request, reschedule)
        elif reschedule:
            self._iterate(request)
        elif self._table.release(request) is sequence is not None:
            self._table.end(sequence)

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Assign sequences to `instances` only. Sequences at removed instances finish there."""
        self._table.set_instances(instances)

    def holds(self, instance: int) -> bool:
        """Return whether live sequences are bound to `instance`."""
        return instance in self._table.groups

    def lost(self, instance: int) -> None:
        """End the sequences of `instance`, whose state in the model is lost.

        Does nothing if the server keeps the states.
        """
        if self._states:
            return
        for request in self._table.mark_down(instance):
            error = (
                self._missing_start(request.sequence.id)
                if self._iterations is None and request.sequence
                else _INSTANCE_LOST
            )
            request.respond(InferResponse.failed(request, error))

    def restored(self, instance: int) -> None:
        """Assign sequences to `instance` again."""
        self._table.mark_up(instance)

    def requeue(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put requests back at the front of their sequences. Return those that cannot run again."""
        # The execution may have consumed the state.
        if self._states or self._iterations is not None:
            return requests
        return [request for request in reversed(requests) if self._table.put_back(request) is None]

    def is_live(self) -> bool:
        """Return whether any sequence is live."""
        return bool(self._table.live)

    def pending(self) -> Sequence[InferRequest]:
        """Return the waiting requests, grouped by sequence."""
        return tuple(self._table.pending())

    def stop(self) -> None:
        """Start no more sequences. Live sequences may continue to their end."""
        self._stopped = True

    def finish(self) -> None:
        """End every sequence after the requests it has. Waiting sequences still get a slot."""
        for sequence in list(self._table.live.values()):
            self._table.end(sequence)

    def _missing_start(self, id: int | str) -> InvalidArgument:  # noqa: A002
        return InvalidArgument(
            f"inference request for sequence {id} to model '{self.context.name}' must specify "
            "the START flag on the first "
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
        return Direct(
            rows, direct.max_queue_delay_microseconds * _US, direct.minimum_slot_utilization, key_of
        )

    def _runnable(self, instance: int) -> SlotGroup | None:
        group = self._table.groups.get(instance)
        if (
            group is None
            or not group.ready
            or (self._delay is not None and self._delay.is_delayed(group, self._table))
        ):
            return None
        return group

    def _decide(self, group: SlotGroup, now_ns: int) -> Decision:
        """Return the strategy's decision. It is cached because one batch needs several calls."""
        decision = group.decision
        if decision is None or (type(decision) is int and now_ns >= decision):
            decision = group.decision = self._strategy.choose(group, now_ns)
        return decision

    def _key_of(self) -> KeyOf | None:
        by_request, states = batch_key(self.context.config), self._states
        if not states:
            return None if by_request is None else lambda sequence: by_request(sequence.waiting[0])
        return lambda sequence: (
            None if by_request is None else by_request(sequence.waiting[0]),
            states.shapes(None if is_start(sequence.waiting[0]) else sequence.state),
        )

    def _iterate(self, request: InferRequest) -> None:
        Iterations.next_iteration(request)
        self._table.put_back(request)
        if request.cancelled:
            self.cancel(request)

    def _batch(self, rows: Sequence[LiveSequence | None]) -> Batch:
        slots = [None if sequence is None else self._table.pull(sequence) for sequence in rows]
        batch = Batch([request for request in slots if request is not None])
        if len(batch.requests) < len(slots):
            batch.slots = slots
        try:
            self._add_control_tensors(batch, rows, slots)
        except Exception:
            # The error handler looks for them among the waiting requests.
            for request in batch.requests:
                self._table.put_back(request)
            raise
        return batch

    def _add_control_tensors(
        self,
        batch: Batch,
        rows: Sequence[LiveSequence | None],
        slots: Sequence[InferRequest | None],
    ) -> None:
        if self._controls:
            batch.controls = self._controls.tensors(slots)
        if self._states:
            self._batch_states.add(batch, rows, slots)
