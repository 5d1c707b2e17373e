"""Which calls between models are open, and which new one could never be answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from tritonpy.config.needed_steps import needed_steps
from tritonpy.config.normalize import instance_specs
from tritonpy.config.qualified import called_model
from tritonpy.errors import TritonError, Unavailable
from tritonpy.runners.deadlock import circle, stuck
from tritonpy.runners.slot import Slot
from tritonpy.types import Batch, InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Node = Slot | InferRequest
_INSTANCE_WAY = "make the call from a decoupled model after its 'execute' returned: it then holds no instance"
_LOOP_WAY = "await 'async_exec' in place of 'exec', which stops the event loop of all the coroutines of an instance"
_Caller = TypeVar("_Caller", Batch, InferRequest)


class CallGraph:
    """One per server: every request that a model makes of another while it is open.

    A call waits for the instance that has it, or for any instance of its model, and for the calls that were made to answer it; an instance waits for
    the calls that its running execution made, and for one that a coroutine made that was left to go on, if its event loop stands still meanwhile.
    An ensemble stands for the models of the steps that it has yet to call. Answered calls vanish by themselves.
    `find(name, version)` returns the configuration of a model that serves, or raises a TritonError. May be used from any thread.
    """

    def __init__(self, find: Callable[[str, int], ModelConfig]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._open: WeakSet[InferRequest] = WeakSet()
        self._made_by: WeakKeyDictionary[Batch, WeakSet[InferRequest]] = WeakKeyDictionary()
        self._made_for: WeakKeyDictionary[InferRequest, WeakSet[InferRequest]] = WeakKeyDictionary()
        self._models_called: WeakKeyDictionary[InferRequest, Counter[str]] = WeakKeyDictionary()  # answered calls count
        self._dependent: WeakKeyDictionary[InferRequest, WeakSet[InferRequest]] = WeakKeyDictionary()
        # By a call for which an event loop stands still: what stands for that loop.
        self._stopped: WeakKeyDictionary[InferRequest, Batch] = WeakKeyDictionary()

    def admit(self, call: InferRequest, execution: Batch | None) -> None:
        """Take `call` in, for which `execution` waits: it holds its instance (None: nobody's instance is held).

        Raises Unavailable for a call that could never be answered; it is then not taken in.
        """
        with self._lock:
            self._open.add(call)
            if execution is None:
                execution = self._loop_of(call)
            if execution is not None:
                _note(self._made_by, execution, call)
            if call.parent is not None and call.parent in self._open:
                _note(self._made_for, call.parent, call)
                self._models_called.setdefault(call.parent, Counter())[call.model_name] += 1
            waits = self._waits(call)
            held = stuck(waits)
            if call in held:
                self._open.discard(call)
                way = _LOOP_WAY if call in self._stopped else _INSTANCE_WAY
                raise _refusal(call.parent if execution is None else execution.instance, circle(waits, held, call), way)

    def admit_child(self, call: InferRequest) -> None:
        """Take `call` in if somebody's instance waits for it, as its parent tells: a step of an ensemble, or a call of a model in this process.

        Raises as `admit` does.
        """
        parent = call.parent
        if parent is None or call in self._open:  # who knew more took it in
            return
        batch = parent.batch
        if batch is not None and batch.executing and not call.went_on:
            self.admit(call, batch)
        elif parent in self._open or call.stops_loop:
            self.admit(call, None)

    def bind(self, call: InferRequest) -> None:
        """Let `call` end early when the request does for which an instance made it: see `cancel_calls_for`."""
        parent = call.parent
        if parent is not None and parent.batch is not None:
            with self._lock:
                _note(self._dependent, parent, call)

    def cancel_calls_for(self, request: InferRequest) -> None:
        """Cancel what was called to answer `request`."""
        with self._lock:
            calls = list(self._dependent.get(request, ()))
        for call in calls:
            call.cancel()

    def forget(self, call: InferRequest) -> None:
        """Take `call` out: nobody took it."""
        with self._lock:
            self._open.discard(call)

    def _loop_of(self, call: InferRequest) -> Batch | None:
        """Return what stands for the event loop that waits for `call`: an execution of nothing, which lasts until the answer."""
        batch = None if call.parent is None else call.parent.batch
        if batch is None or not call.stops_loop:
            return None
        self._stopped[call] = loop = Batch([], model=batch.model, instance=batch.instance, executing=True)
        return loop

    def _waits(self, call: InferRequest) -> dict[Node, list[list[Node]]]:
        """Return what `call` waits for, and what that waits for, and so on."""
        blocked = self._blocked()
        stopped = {self._stopped[call].instance for call in self._still_open(self._stopped)}
        waits: dict[Node, list[list[Node]]] = {}
        todo: list[Node] = [call]
        while todo:
            node = todo.pop()
            if node not in waits:
                waits[node] = self._groups(node, blocked, stopped)
                todo += [member for group in waits[node] for member in group]
        return waits

    def _blocked(self) -> dict[Slot, tuple[ModelConfig, list[InferRequest]]]:
        """Return the instances that wait for calls: each one's model, and the calls."""
        blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]] = {}
        for batch, calls in list(self._made_by.items()):
            waiting = self._still_open(calls)
            if waiting and batch.executing and batch.model is not None:
                blocked.setdefault(batch.instance, (batch.model.config, []))[1].extend(waiting)
        return blocked

    def _groups(
        self, node: Node, blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]], stopped: Collection[Slot]
    ) -> list[list[Node]]:
        if isinstance(node, Slot):
            return [[call] for call in blocked[node][1]] if node in blocked else []
        batch, groups = node.batch, list[list[Node]]()
        if batch is None:
            called = self._models_called.get(node, Counter())
            wanted = None if node.outputs is None else tuple(node.outputs)
            groups += self._instances(node.model_name, node.model_version, wanted, blocked, stopped, set(), called)
        elif batch.executing or batch.instance in stopped:
            groups.append([batch.instance])
        groups += [[call] for call in self._still_open(self._made_for.get(node, ()))]
        return groups

    def _instances(
        self,
        name: str,
        version: int,
        wanted: Collection[str] | None,
        blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]],
        stopped: Collection[Slot],
        seen: set[tuple[str, int]],
        called: Counter[str],
    ) -> Iterator[list[Node]]:
        """Yield the instances of a model, where all of them are blocked; of an ensemble, those of each model that is not yet `called` for it.

        One whose event loop is stopped stands for itself, too: it executes nothing and so may be given what it cannot begin.
        `wanted` are the outputs that it is asked for (None: all): an ensemble runs the steps that they need.
        """
        if (name, version) in seen:
            return
        seen.add((name, version))
        try:
            config = self._find(name, version)
        except TritonError:  # a call to it fails, which is an answer
            return
        slots: list[Node] = [slot for slot, (its, _) in blocked.items() if its is config and not slot.leaving]
        yield from ([slot] for slot in slots if slot in stopped)
        if slots and len(slots) >= sum(not spec.passive for spec in instance_specs(config)):
            yield slots
        to_come = called.copy()
        steps = config.ensemble_scheduling.step
        outputs = [output.name for output in config.output] if wanted is None else wanted
        for step in [steps[place] for place in needed_steps(steps, outputs)]:
            name = called_model(step)
            to_come[name] -= 1
            if to_come[name] < 0:
                asked = tuple(step.output_map)
                yield from self._instances(name, step.model_version, asked, blocked, stopped, seen, Counter())

    def _still_open(self, calls: Iterable[InferRequest]) -> list[InferRequest]:
        return [call for call in list(calls) if not call.answered and call in self._open]


def _note(calls: WeakKeyDictionary[_Caller, WeakSet[InferRequest]], caller: _Caller, call: InferRequest) -> None:
    made = calls.get(caller)
    if made is None:
        calls[caller] = made = WeakSet()
    made.add(call)


def _refusal(caller: Node | None, path: list[Node], way_out: str) -> Unavailable:
    """Return the error that tells of the circle: `path` begins with the refused call."""
    way = path if caller is None else [caller, *path]
    steps = [
        f"{_name(node)} waits for model '{then.model_name}'"
        for node, then in pairwise(way)
        if isinstance(then, InferRequest)
    ]
    said = ", ".join(dict.fromkeys(steps))  # the way ends where it begins
    return Unavailable(
        f"the call would wait for ever: {said}, and no other instance is free to answer. Give one of these models more instances "
        f"(instance_group), or {way_out}."
    )


def _name(node: Node) -> str:
    return f"instance '{node.name}'" if isinstance(node, Slot) else f"a request of model '{node.model_name}'"
