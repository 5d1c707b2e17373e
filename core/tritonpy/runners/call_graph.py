"""The graph of calls between models, and the refusal of calls that would deadlock."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from tritonpy.runners.slot import Slot
from tritonpy_config.model_fit import called_model, needed_steps
from tritonpy_config.normalization import instance_specs
from tritonpy_types import Batch, InferRequest, Tensor
from tritonpy_types.errors import Internal, InvalidArgument, TritonError, Unavailable

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Node = Slot | InferRequest
_INSTANCE_ADVICE = (
    "make the call from a decoupled model after its 'execute' returned: it then holds no instance"
)
_LOOP_ADVICE = (
    "await 'async_exec' instead of 'exec', which blocks the event loop of all the coroutines of "
    "an instance"
)
_Caller = TypeVar("_Caller", Batch, InferRequest)


def check_model_call(
    call: InferRequest, inputs: Sequence[Tensor], find: Callable[[str, int], ModelConfig]
) -> None:
    """Raise the error that a call causes before it becomes a request.

    `inputs` are the tensors that the model passed. `find(name, version)` returns the configuration
    of a ready model or raises a `TritonError`.
    """
    name = call.model_name
    try:
        config = find(name, call.model_version)
    except TritonError:
        raise Internal(
            f"Failed for execute the inference request. Model '{name}' is not ready."
        ) from None
    if config.model_transaction_policy.decoupled and not call.accepts_decoupled:
        raise Internal(
            f"Model {name} is using the decoupled. The current BLS request call doesn't support "
            "models using the decoupled "
            "transaction policy. Please use 'decoupled=True' argument to the 'exec' or "
            "'async_exec' calls for decoupled models.'"
        )
    if len(call.inputs) != len(inputs):
        names = [tensor.name for tensor in inputs]
        twice = next(each for each in names if names.count(each) > 1)
        raise InvalidArgument(f"input '{twice}' already exists in request").with_request_id(call.id)


def refused_model_call(name: str, error: TritonError) -> Internal:
    """Return the error that the calling model gets when its call to model `name` fails."""
    return Internal(f"Model {name} - Error when running inference: {error.message}")


class CallGraph:
    """The requests in flight that models make to other models; one per server.

    A call waits for its instance, or for any instance of its model, and for the calls made on its
    behalf. An instance waits for the calls of its running execution. It also waits for a call of a
    background coroutine that blocks the event loop. An ensemble waits for the models of its
    remaining steps. Finished calls are removed automatically.

    `find(name, version)` returns the configuration of a ready model or raises a `TritonError`. Any
    thread may use this class.
    """

    def __init__(self, find: Callable[[str, int], ModelConfig]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._open: WeakSet[InferRequest] = WeakSet()
        self._made_by: WeakKeyDictionary[Batch, WeakSet[InferRequest]] = WeakKeyDictionary()
        self._made_for: WeakKeyDictionary[InferRequest, WeakSet[InferRequest]] = WeakKeyDictionary()
        # How often a request has called each model, including finished calls.
        self._models_called: WeakKeyDictionary[InferRequest, Counter[str]] = WeakKeyDictionary()
        self._dependent: WeakKeyDictionary[InferRequest, WeakSet[InferRequest]] = (
            WeakKeyDictionary()
        )
        # For a call that blocks an event loop: the batch that represents the loop.
        self._stopped: WeakKeyDictionary[InferRequest, Batch] = WeakKeyDictionary()

    def admit(self, call: InferRequest, execution: Batch | None) -> None:
        """Add `call`, for which the instance of `execution` waits (None: no instance waits).

        Raises `Unavailable` for a call that would deadlock, which is not added.
        """
        with self._lock:
            self._open.add(call)
            if execution is None:
                execution = self._loop_of(call)
            if execution is not None:
                _add_call(self._made_by, execution, call)
            if call.parent is not None and call.parent in self._open:
                _add_call(self._made_for, call.parent, call)
                self._models_called.setdefault(call.parent, Counter())[call.model_name] += 1
            waits = self._waits(call)
            held = find_stuck(waits)
            if call in held:
                self._open.discard(call)
                way = _LOOP_ADVICE if call in self._stopped else _INSTANCE_ADVICE
                raise _refusal(
                    call.parent if execution is None else execution.instance,
                    find_cycle(waits, held, call),
                    way,
                )

    def admit_child(self, call: InferRequest) -> None:
        """Add `call` if an instance waits for it because of its parent.

        Such a call is a step of an ensemble or a call of a model in this process. Raises as `admit`
        does.
        """
        parent = call.parent
        if parent is None or call in self._open:  # already added with more information
            return
        batch = parent.batch
        if batch is not None and batch.executing and not call.detached:
            self.admit(call, batch)
        elif parent in self._open or call.blocks_loop:
            self.admit(call, None)

    def bind(self, call: InferRequest) -> None:
        """Let `cancel_calls_for` cancel `call` together with the request that it was made for."""
        parent = call.parent
        if parent is not None and parent.batch is not None:
            with self._lock:
                _add_call(self._dependent, parent, call)

    def cancel_calls_for(self, request: InferRequest) -> None:
        """Cancel the calls that were made to process `request`."""
        with self._lock:
            calls = list(self._dependent.get(request, ()))
        for call in calls:
            call.cancel()

    def forget(self, call: InferRequest) -> None:
        """Remove `call`, which was not accepted."""
        with self._lock:
            self._open.discard(call)

    def _loop_of(self, call: InferRequest) -> Batch | None:
        """Return an empty execution that represents the event loop blocked by `call`."""
        batch = None if call.parent is None else call.parent.batch
        if batch is None or not call.blocks_loop:
            return None
        self._stopped[call] = loop = Batch(
            [], model=batch.model, instance=batch.instance, executing=True
        )
        return loop

    def _waits(self, call: InferRequest) -> dict[Node, list[list[Node]]]:
        """Return the wait-for graph that is reachable from `call`."""
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
        """Return the instances that wait for calls, each with its model and the calls."""
        blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]] = {}
        for batch, calls in list(self._made_by.items()):
            waiting = self._still_open(calls)
            if waiting and batch.executing and batch.model is not None:
                blocked.setdefault(batch.instance, (batch.model.config, []))[1].extend(waiting)
        return blocked

    def _groups(
        self,
        node: Node,
        blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]],
        stopped: Collection[Slot],
    ) -> list[list[Node]]:
        if isinstance(node, Slot):
            return [[call] for call in blocked[node][1]] if node in blocked else []
        batch, groups = node.batch, list[list[Node]]()
        if batch is None:
            called = self._models_called.get(node, Counter())
            requested = None if node.outputs is None else tuple(node.outputs)
            groups += self._instances(
                node.model_name, node.model_version, requested, blocked, stopped, set(), called
            )
        elif batch.executing or batch.instance in stopped:
            groups.append([batch.instance])
        groups += [[call] for call in self._still_open(self._made_for.get(node, ()))]
        return groups

    def _instances(
        self,
        name: str,
        version: int,
        requested: Collection[str] | None,
        blocked: dict[Slot, tuple[ModelConfig, list[InferRequest]]],
        stopped: Collection[Slot],
        seen: set[tuple[str, int]],
        called: Counter[str],
    ) -> Iterator[list[Node]]:
        """Yield the instances of a model if all of them are blocked.

        For an ensemble, yields those of each model that is not yet `called` for it. An instance
        with a blocked event loop is also yielded alone: it may be assigned a request that it cannot
        begin. `requested` are the requested outputs (None: all), which determine the steps of an
        ensemble.
        """
        if (name, version) in seen:
            return
        seen.add((name, version))
        try:
            config = self._find(name, version)
        except TritonError:  # a call to it fails, and so does not wait
            return
        slots: list[Node] = [
            slot for slot, (its, _) in blocked.items() if its is config and not slot.draining
        ]
        yield from ([slot] for slot in slots if slot in stopped)
        if slots and len(slots) >= sum(not spec.passive for spec in instance_specs(config)):
            yield slots
        to_come = called.copy()
        steps = config.ensemble_scheduling.step
        outputs = [output.name for output in config.output] if requested is None else requested
        for step in [steps[place] for place in needed_steps(steps, outputs)]:
            name = called_model(step)
            to_come[name] -= 1
            if to_come[name] < 0:
                outputs = tuple(step.output_map)
                yield from self._instances(
                    name, step.model_version, outputs, blocked, stopped, seen, Counter()
                )

    def _still_open(self, calls: Iterable[InferRequest]) -> list[InferRequest]:
        return [call for call in list(calls) if not call.finished and call in self._open]


def _add_call(
    calls: WeakKeyDictionary[_Caller, WeakSet[InferRequest]], caller: _Caller, call: InferRequest
) -> None:
    made = calls.get(caller)
    if made is None:
        calls[caller] = made = WeakSet()
    made.add(call)


def _refusal(caller: Node | None, path: list[Node], advice: str) -> Unavailable:
    """Return the error that describes the cycle; `path` begins with the refused call."""
    way = path if caller is None else [caller, *path]
    steps = [
        f"{_name(node)} waits for model '{then.model_name}'"
        for node, then in pairwise(way)
        if isinstance(then, InferRequest)
    ]
    chain = ", ".join(dict.fromkeys(steps))  # the path ends where it begins
    return Unavailable(
        f"the call would deadlock: {chain}, and no other instance is free to execute it. "
        "Give one of these models more instances "
        f"(instance_group), or {advice}."
    )


def _name(node: Node) -> str:
    return (
        f"instance '{node.name}'"
        if isinstance(node, Slot)
        else f"a request of model '{node.model_name}'"
    )


Waiter = TypeVar("Waiter", bound=Hashable)
# A node can proceed when at least one member of each of its groups can. A node without groups or
# without an entry is not blocked.
Waits = Mapping[Waiter, Collection[Collection[Waiter]]]


def find_stuck(waits: Waits[Waiter]) -> set[Waiter]:
    """Return the nodes that can never proceed, in any order of events."""
    held = set(waits)
    while True:
        free = {
            node
            for node in held
            if all(any(each not in held for each in group) for group in waits[node])
        }
        if not free:
            return held
        held -= free


def find_cycle(waits: Waits[Waiter], held: set[Waiter], start: Waiter) -> list[Waiter]:
    """Return a path of stuck nodes from `start`, each waiting for the next, until one repeats."""
    path = [start]
    while path[-1] not in path[:-1]:
        group = next(group for group in waits[path[-1]] if held.issuperset(group))
        path.append(next(iter(group)))
    return path
