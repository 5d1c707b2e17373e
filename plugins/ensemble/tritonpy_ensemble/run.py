"""One request on its way through an ensemble."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tritonpy import Engine, InferRequest, InferResponse, Sink, TritonError, Work, incident
from tritonpy_ensemble.answer_order import AnswerOrder
from tritonpy_ensemble.failures import cancelled_before, failed_step, nothing_more
from tritonpy_ensemble.frame import Frame, Value
from tritonpy_ensemble.gate import Gate
from tritonpy_ensemble.handing_on import Call, answer_of, call_of
from tritonpy_ensemble.members import Member
from tritonpy_ensemble.plan import Plan, Step
from tritonpy_ensemble.sequences import sequence_of
from tritonpy_ensemble.turns import Turns

MOST_HELD = 64  # answers that wait for an earlier one, before those whose answers would wait too should pause
NOBODY = -1

log = logging.getLogger("tritonpy.model")


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What all runs of an ensemble share: whom they call, the gates of its steps by their place (none where calls are not limited), whom they
    tell of their end."""

    engine: Engine
    gates: Mapping[int, Gate]
    ended: Callable[[InferRequest], object]


class Run(Sink):
    """Begins each step when its tensors are there, and answers when the outputs are. It is the sink of its calls.

    Whatever happens to it, an answer, a cancellation, is one turn; turns never overlap, so that nothing here needs a lock, and a long chain of
    answers that come at once needs no deep stack. It ends when its last call has ended, with an error as well: until then the members may read
    the inputs, which belong to the request.
    """

    def __init__(
        self, request: InferRequest, plan: Plan, members: Sequence[Member], work: Work, around: Surroundings
    ) -> None:
        self._request = request
        self._plan = plan
        self._members = members
        self._work = work
        self._around = around
        self._gates = around.gates and self._gates_to_pass()
        self._turns = Turns()
        # The answers of an ensemble that is not decoupled have no order: there is one.
        self._order: AnswerOrder[InferResponse] | None = AnswerOrder() if plan.decoupled else None
        self._startable: list[tuple[Frame, Step]] = []
        self._running: set[InferRequest] = set()
        self._outside: dict[int, int] = {}  # how many calls wait at the gates, by the rank of their step
        self._backlog = NOBODY  # the highest of these ranks
        self._paused: list[tuple[InferRequest, Callable[[], None]]] = []
        self._due: list[InferResponse] = []
        self._error: TritonError | None = None
        self._answers = 0
        self._over = False

    def begin(self) -> None:
        """Begin the steps that need nothing but the inputs of the ensemble."""
        self._turns.take(self._turn, self._begin)

    def cancel(self) -> None:
        """Begin no further step, and pass the word to the calls that are under way."""
        self._turns.take(self._turn, self._cancel)

    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Take an answer of a member."""
        self._turns.take(self._turn, self._take_answer, request, response)

    def ready(self, request: InferRequest) -> bool:
        """Return whether a member should answer now: not while what its answers lead to waits at a gate, nor while the client does not read."""
        return self._has_room(request) and self._request.sink.ready(self._request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Call back when it should, or when nobody listens any more."""
        self._turns.take(self._turn, self._pause, request, callback)

    def cancelled(self, request: InferRequest) -> None:
        """Call back the member if it waits to answer."""
        if self._paused:
            self._turns.take(self._turn, self._resume)

    def _turn(self, act: Callable[..., None], *arguments: object) -> None:
        try:
            act(*arguments)
            self._settle()
        except Exception as error:  # whoever called could not answer for it
            self._end_with(incident(log, f"ensemble '{self._plan.ensemble}'", error))
            self._settle()

    def _begin(self) -> None:
        request, plan, order = self._request, self._plan, self._order
        root = Frame(plan, None if order is None else order.root)
        rows = request.batch_size if plan.batched else 0
        for name, tensor in plan.inputs:
            root.fill(tensor, Value(request.inputs.get(name), rows, request.sequence), self._startable)

    def _take_answer(self, call: InferRequest, response: InferResponse) -> None:
        known: Call = call.tag
        frame, step, member = known
        if response.final:
            self._running.discard(call)
            self._leave(step)
            if call.work is not None:
                self._work.add(call.work)
        if self._error is not None:
            return
        if response.error is not None:
            self._fail(step, response.error)
            return
        place = frame.place
        if not response.empty:
            branch = None if place is None or not member.decoupled else Frame(self._plan, place.branch())
            self._take_outputs(branch or frame, call, response)
        if response.final and place is not None and (member.decoupled or response.empty):
            place.closed = True
        elif response.empty and not frame.has_all(step.outputs.values()):
            self._end_with(nothing_more(self._plan, self._request, step))

    def _take_outputs(self, frame: Frame, call: InferRequest, response: InferResponse) -> None:
        known: Call = call.tag
        step, sequence = known.step, call.sequence
        if response.parameters:
            try:
                sequence = sequence_of(response.parameters, sequence)
            except TritonError as error:
                self._fail(step, error)
                return
        rows = call.batch_size if known.member.batched else 0
        for tensor in response.outputs:
            number = step.outputs.get(tensor.name)
            if number is not None:
                frame.fill(number, Value(tensor, rows, sequence), self._startable)
        if len(response.outputs) < len(step.outputs):
            # What was left out is there, as nothing: an optional input can do without.
            for number in step.outputs.values():
                frame.fill(number, Value(None, rows, sequence), self._startable)
        if frame.take_whole():
            answer = answer_of(self._request, frame)
            if self._order is None or frame.place is None:
                self._due.append(answer)
            else:
                self._order.put(frame.place, answer)

    def _settle(self) -> None:
        """Send what is due, begin what can begin, end what has ended."""
        if self._error is None and (self._due or self._order is not None):
            self._send()
        while self._startable and self._error is None:
            startable, self._startable = self._startable, []
            for frame, step in startable:
                self._start(frame, step)
        if self._paused:
            self._resume()
        if not self._over and not self._is_open():
            self._over = True
            self._finish()

    def _gates_to_pass(self) -> Mapping[int, Gate]:
        """Return the gates but for those that let in a call which this request was made to answer: that one would wait for itself.

        None where an instance waits for the answer: whoever was let in may need that instance before it leaves.
        """
        gates = dict(self._around.gates)
        above: InferRequest | None = self._request
        while above is not None:
            if above.batch is not None and above.batch.executing:
                return {}
            if isinstance(above.sink, Run) and above.sink._around is self._around:
                gates.pop(above.tag.step.place, None)
            above = above.parent
        return gates

    def _is_open(self) -> bool:
        return bool(self._running or self._startable or self._outside)

    def _send(self) -> None:
        """Send the answers whose turn it is; where nothing else can come, the last one is final."""
        is_open, order = self._is_open(), self._order
        if order is not None:
            self._due += order.due() if is_open else order.rest()
        elif is_open:
            return  # the member has yet to say that this was all
        due, self._due = self._due, []
        for response in due:
            response.final = not is_open and response is due[-1]
            if response.final:
                self._over = True
                self._around.ended(self._request)
            self._answers += 1
            self._request.respond(response)

    def _start(self, frame: Frame, step: Step) -> None:
        if self._error is not None:
            return
        gate = self._gates.get(step.place)
        if gate is not None and not gate.enter(self, partial(self._let_in, frame, step)):
            self._outside[step.rank] = self._outside.get(step.rank, 0) + 1
            self._backlog = max(self._backlog, step.rank)
            return
        self._call(frame, step)

    def _let_in(self, frame: Frame, step: Step) -> None:
        self._turns.take(self._turn, self._come_in, frame, step)

    def _come_in(self, frame: Frame, step: Step) -> None:
        self._no_longer_outside(step, 1)
        if self._error is None:
            self._call(frame, step)
        else:
            self._leave(step)

    def _no_longer_outside(self, step: Step, count: int) -> None:
        self._outside[step.rank] -= count
        if not self._outside[step.rank]:
            del self._outside[step.rank]
            self._backlog = max(self._outside, default=NOBODY)

    def _leave(self, step: Step) -> None:
        gate = self._gates.get(step.place)
        if gate is not None:
            gate.leave()

    def _call(self, frame: Frame, step: Step) -> None:
        request = self._request
        if request.cancelled:
            self._leave(step)
            self._end_with(cancelled_before(self._plan, step))
            return
        call: InferRequest | None = None
        try:
            call = call_of(request, frame, step, self._members[step.index], self)
            self._running.add(call)
            self._around.engine.infer(call)
        except Exception as error:
            if call is not None:
                self._running.discard(call)
            self._leave(step)
            refusal = error if isinstance(error, TritonError) else incident(log, f"a call of '{step.model}'", error)
            self._fail(step, refusal)

    def _fail(self, step: Step, error: TritonError) -> None:
        self._end_with(failed_step(self._plan, step, error))

    def _end_with(self, error: TritonError) -> None:
        """Make `error` the answer, if it is the first one, and see to it that the calls end."""
        if self._error is None:
            self._error = error
            self._startable.clear()
            self._forget_gates()
            self._cancel_calls()

    def _forget_gates(self) -> Step | None:
        """Wait at no gate any more; return a step that waited at one."""
        found: Step | None = None
        if self._outside:
            for step in self._plan.steps:
                gate = self._gates.get(step.place)
                count = gate.forget(self) if gate is not None else 0
                if count:
                    found = step
                    self._no_longer_outside(step, count)
        return found

    def _cancel_calls(self) -> None:
        for call in list(self._running):
            call.cancel()

    def _cancel(self) -> None:
        step = self._forget_gates()
        if step is not None:
            self._end_with(cancelled_before(self._plan, step))
        else:
            self._cancel_calls()

    def _has_room(self, call: InferRequest) -> bool:
        known: Call = call.tag
        if self._backlog > known.step.rank:
            return False
        order = self._order
        # While a call waits at a gate it may wait for one of those whose answers are held back: these have to go on.
        return order is None or order.held < MOST_HELD or self._backlog != NOBODY or order.next is known.frame.place

    def _pause(self, call: InferRequest, callback: Callable[[], None]) -> None:
        if self._error is not None or self._over or call.cancelled or self._request.cancelled:
            callback()
        elif self._has_room(call):
            self._request.sink.when_ready(self._request, callback)
        else:
            self._paused.append((call, callback))

    def _resume(self) -> None:
        paused, self._paused = self._paused, []
        for call, callback in paused:
            self._pause(call, callback)

    def _finish(self) -> None:
        request = self._request
        self._around.ended(request)
        if self._error is not None:
            request.respond(InferResponse.failed(request, self._error))
        elif self._answers or self._plan.decoupled:
            request.respond(InferResponse((), empty=True))
        else:
            request.respond(InferResponse.failed(request, nothing_more(self._plan, request, None)))
