"""Execution of one ensemble request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tritonpy import Engine, InferRequest, InferResponse, TritonError
from tritonpy.frontend import Sink, internal_error
from tritonpy.metrics import ComputeTimes
from tritonpy_ensemble.errors import cancelled_error, deadlock_error, step_error
from tritonpy_ensemble.inflight_limiter import InflightLimiter
from tritonpy_ensemble.member_requests import MemberCall, make_call, make_response
from tritonpy_ensemble.members import Member
from tritonpy_ensemble.plan import EnsembleStep, Plan
from tritonpy_ensemble.plan_progress import PlanProgress, Value
from tritonpy_ensemble.response_order import ResponseOrder
from tritonpy_ensemble.sequences import next_sequence
from tritonpy_ensemble.serial_executor import SerialExecutor

MAX_HELD = 64  # responses held back before members that would add more have to pause
NO_RANK = -1

log = logging.getLogger("tritonpy.model")


@dataclass(frozen=True, slots=True, eq=False)
class RunContext:
    """State that all runs of an ensemble share.

    `limiters` maps the `place` of a step to its limiter; it is empty without a limit. `ended` is
    called at the end of each run.
    """

    engine: Engine
    limiters: Mapping[int, InflightLimiter]
    ended: Callable[[InferRequest], object]


class EnsembleRun(Sink):
    """Starts steps when their tensors are present and responds when the outputs are.

    It is the sink of its calls. A `SerialExecutor` processes all events, so no lock is needed and a
    long chain of immediate responses needs no deep stack. A run ends when its last call has ended,
    even after an error, because until then members may read the request's inputs.
    """

    def __init__(
        self,
        request: InferRequest,
        plan: Plan,
        members: Sequence[Member],
        compute_times: ComputeTimes,
        context: RunContext,
    ) -> None:
        self._request = request
        self._plan = plan
        self._members = members
        self._compute_times = compute_times
        self._context = context
        self._limiters = context.limiters and self._select_limiters()
        self._executor = SerialExecutor()
        # Only decoupled ensembles have several responses to order.
        self._order: ResponseOrder[InferResponse] | None = (
            ResponseOrder() if plan.decoupled else None
        )
        self._startable: list[tuple[PlanProgress, EnsembleStep]] = []
        self._running: set[InferRequest] = set()
        # Calls waiting for a limiter, by the rank of their step.
        self._waiting_by_rank: dict[int, int] = {}
        self._backlog = NO_RANK  # the highest of these ranks
        self._paused: list[tuple[InferRequest, Callable[[], None]]] = []
        self._due: list[InferResponse] = []
        self._error: TritonError | None = None
        self._sent = 0
        self._over = False

    def begin(self) -> None:
        """Start the steps that need only the inputs of the ensemble."""
        self._executor.execute(self._process, self._begin)

    def cancel(self) -> None:
        """Start no further step and cancel the calls in flight."""
        self._executor.execute(self._process, self._cancel)

    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Process a response of a member."""
        self._executor.execute(self._process, self._take_response, request, response)

    def ready(self, request: InferRequest) -> bool:
        """Return whether a member may send its next response.

        False while calls that result from its responses wait for a limiter, or while the client
        does not read.
        """
        return self._may_send(request) and self._request.sink.ready(self._request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Call `callback` when the member may send again, or when its responses are not needed."""
        self._executor.execute(self._process, self._pause, request, callback)

    def cancelled(self, request: InferRequest) -> None:
        """Resume a member that waits to send."""
        if self._paused:
            self._executor.execute(self._process, self._resume)

    def _process(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            function(*arguments)
            self._advance()
        except Exception as error:  # the thread that runs this cannot handle it
            self._fail_with(internal_error(log, f"ensemble '{self._plan.ensemble}'", error))
            self._advance()

    def _begin(self) -> None:
        request, plan, order = self._request, self._plan, self._order
        root = PlanProgress(plan, None if order is None else order.root)
        rows = request.batch_size if plan.batched else 0
        for name, tensor in plan.inputs:
            root.fill(
                tensor, Value(request.inputs.get(name), rows, request.sequence), self._startable
            )

    def _take_response(self, call: InferRequest, response: InferResponse) -> None:
        call_info: MemberCall = call.tag
        progress, step, member = call_info
        if response.final:
            self._running.discard(call)
            self._release(step)
            if call.compute_times is not None:
                self._compute_times.add(call.compute_times)
        if self._error is not None:
            return
        if response.error is not None:
            self._fail(step, response.error)
            return
        node = progress.node
        if not response.empty:
            child = (
                None
                if node is None or not member.decoupled
                else PlanProgress(self._plan, node.add_child())
            )
            self._take_outputs(child or progress, call, response)
        if response.final and node is not None and (member.decoupled or response.empty):
            node.closed = True
        elif response.empty and not progress.are_present(step.outputs.values()):
            self._fail_with(deadlock_error(self._plan, self._request, step))

    def _take_outputs(
        self, progress: PlanProgress, call: InferRequest, response: InferResponse
    ) -> None:
        call_info: MemberCall = call.tag
        step, sequence = call_info.step, call.sequence
        if response.parameters:
            try:
                sequence = next_sequence(response.parameters, sequence)
            except TritonError as error:
                self._fail(step, error)
                return
        rows = call.batch_size if call_info.member.batched else 0
        for tensor in response.outputs:
            number = step.outputs.get(tensor.name)
            if number is not None:
                progress.fill(number, Value(tensor, rows, sequence), self._startable)
        if len(response.outputs) < len(step.outputs):
            # Mark omitted outputs as present, because optional inputs do not need them.
            for number in step.outputs.values():
                progress.fill(number, Value(None, rows, sequence), self._startable)
        if progress.take_completed():
            result = make_response(self._request, progress)
            if self._order is None or progress.node is None:
                self._due.append(result)
            else:
                self._order.put(progress.node, result)

    def _advance(self) -> None:
        """Send due responses, start steps, and finish if nothing is pending."""
        if self._error is None and (self._due or self._order is not None):
            self._send()
        while self._startable and self._error is None:
            startable, self._startable = self._startable, []
            for progress, step in startable:
                self._start(progress, step)
        if self._paused:
            self._resume()
        if not self._over and not self._has_pending():
            self._over = True
            self._finish()

    def _select_limiters(self) -> Mapping[int, InflightLimiter]:
        """Return the limiters that apply to this request; others could cause a deadlock.

        The request may be part of a call that counts against a limiter. That call cannot end first,
        so this limiter does not apply. No limiter applies while an instance waits for the response,
        because running calls may need that instance.
        """
        limiters = dict(self._context.limiters)
        parent: InferRequest | None = self._request
        while parent is not None:
            if parent.batch is not None and parent.batch.executing:
                return {}
            if isinstance(parent.sink, EnsembleRun) and parent.sink._context is self._context:
                limiters.pop(parent.tag.step.place, None)
            parent = parent.parent
        return limiters

    def _has_pending(self) -> bool:
        return bool(self._running or self._startable or self._waiting_by_rank)

    def _send(self) -> None:
        """Send due responses. The last one is final if nothing is pending."""
        has_pending, order = self._has_pending(), self._order
        if order is not None:
            self._due += order.due() if has_pending else order.rest()
        elif has_pending:
            return  # the member has not sent its final response
        due, self._due = self._due, []
        for response in due:
            response.final = not has_pending and response is due[-1]
            if response.final:
                self._over = True
                self._context.ended(self._request)
            self._sent += 1
            self._request.respond(response)

    def _start(self, progress: PlanProgress, step: EnsembleStep) -> None:
        if self._error is not None:
            return
        limiter = self._limiters.get(step.place)
        if limiter is not None and not limiter.try_acquire(
            self, partial(self._admit_later, progress, step)
        ):
            self._waiting_by_rank[step.rank] = self._waiting_by_rank.get(step.rank, 0) + 1
            self._backlog = max(self._backlog, step.rank)
            return
        self._call(progress, step)

    def _admit_later(self, progress: PlanProgress, step: EnsembleStep) -> None:
        self._executor.execute(self._process, self._start_admitted, progress, step)

    def _start_admitted(self, progress: PlanProgress, step: EnsembleStep) -> None:
        self._count_admitted(step, 1)
        if self._error is None:
            self._call(progress, step)
        else:
            self._release(step)

    def _count_admitted(self, step: EnsembleStep, count: int) -> None:
        self._waiting_by_rank[step.rank] -= count
        if not self._waiting_by_rank[step.rank]:
            del self._waiting_by_rank[step.rank]
            self._backlog = max(self._waiting_by_rank, default=NO_RANK)

    def _release(self, step: EnsembleStep) -> None:
        limiter = self._limiters.get(step.place)
        if limiter is not None:
            limiter.release()

    def _call(self, progress: PlanProgress, step: EnsembleStep) -> None:
        request = self._request
        if request.cancelled:
            self._release(step)
            self._fail_with(cancelled_error(self._plan, step))
            return
        call: InferRequest | None = None
        try:
            call = make_call(request, progress, step, self._members[step.index], self)
            self._running.add(call)
            self._context.engine.infer(call)
        except Exception as error:
            if call is not None:
                self._running.discard(call)
            self._release(step)
            failure = (
                error
                if isinstance(error, TritonError)
                else internal_error(log, f"a call of '{step.model}'", error)
            )
            self._fail(step, failure)

    def _fail(self, step: EnsembleStep, error: TritonError) -> None:
        self._fail_with(step_error(self._plan, step, error))

    def _fail_with(self, error: TritonError) -> None:
        """Set the error of the request, unless it has one, and cancel all calls."""
        if self._error is None:
            self._error = error
            self._startable.clear()
            self._leave_queues()
            self._cancel_calls()

    def _leave_queues(self) -> EnsembleStep | None:
        """Remove all calls that wait for limiters. Return a step of one of them, or None."""
        found: EnsembleStep | None = None
        if self._waiting_by_rank:
            for step in self._plan.steps:
                limiter = self._limiters.get(step.place)
                count = limiter.remove(self) if limiter is not None else 0
                if count:
                    found = step
                    self._count_admitted(step, count)
        return found

    def _cancel_calls(self) -> None:
        for call in list(self._running):
            call.cancel()

    def _cancel(self) -> None:
        step = self._leave_queues()
        if step is not None:
            self._fail_with(cancelled_error(self._plan, step))
        else:
            self._cancel_calls()

    def _may_send(self, call: InferRequest) -> bool:
        call_info: MemberCall = call.tag
        if self._backlog > call_info.step.rank:
            return False
        order = self._order
        # A call that waits for a limiter may depend on a member whose responses are held back. That
        # member must continue.
        return (
            order is None
            or order.held < MAX_HELD
            or self._backlog != NO_RANK
            or order.next is call_info.progress.node
        )

    def _pause(self, call: InferRequest, callback: Callable[[], None]) -> None:
        if self._error is not None or self._over or call.cancelled or self._request.cancelled:
            callback()
        elif self._may_send(call):
            self._request.sink.when_ready(self._request, callback)
        else:
            self._paused.append((call, callback))

    def _resume(self) -> None:
        paused, self._paused = self._paused, []
        for call, callback in paused:
            self._pause(call, callback)

    def _finish(self) -> None:
        request = self._request
        self._context.ended(request)
        if self._error is not None:
            request.respond(InferResponse.failed(request, self._error))
        elif self._sent or self._plan.decoupled:
            request.respond(InferResponse((), empty=True))
        else:
            request.respond(
                InferResponse.failed(request, deadlock_error(self._plan, request, None))
            )
