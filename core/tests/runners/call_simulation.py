"""A simulated server whose models call each other: event by event, without threads or time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace

from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.slot import Slot
from tritonpy_config.normalization import normalize
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.parse import model_config
from tritonpy_types import Batch, InferRequest
from tritonpy_types.errors import NotFound, Unavailable


@dataclass
class Plan:
    """A request to `model` and the calls that the model makes for it, in order."""

    model: str
    calls: list[Plan] = field(default_factory=list)


@dataclass
class Flow:
    """A request in flight; `batch` is the execution that holds an instance for it, if any."""

    request: InferRequest
    todo: deque[Plan]
    batch: Batch | None = None
    waits_for: Flow | None = None


class CallSimulation:
    """A simulated server; `instances` are counts by model, `steps` the models of each ensemble.

    `execute` of a `decoupled` model returns immediately. A model that is also `halting` continues
    in coroutines, whose calls block the event loop of their instance. Other models do not exist.
    """

    def __init__(
        self,
        instances: dict[str, int],
        steps: dict[str, Sequence[str]] | None = None,
        decoupled: Sequence[str] = (),
        halting: Sequence[str] = (),
    ) -> None:
        self._halting = halting
        self._configs = {name: _model(name, count) for name, count in instances.items()} | {
            name: _ensemble(name, tuple(models)) for name, models in (steps or {}).items()
        }
        self._decoupled = decoupled
        self._slots = {
            name: [
                Slot(InstanceContext(f"{name}_0_{index}", "CPU", 0, index))
                for index in range(count)
            ]
            for name, count in instances.items()
        }
        self._queues: dict[str, deque[Flow]] = {name: deque() for name in instances}
        self.running: list[Flow] = []
        # Caller, called model and error text of refused calls.
        self.refused: list[tuple[Flow, str, str]] = []
        self.graph = CallGraph(self._find)

    def send_request(self, plan: Plan) -> Flow:
        """Send a client's request."""
        return self._send(InferRequest(plan.model, {}, None), plan)

    def call(self, caller: Flow, plan: Plan) -> Flow:
        """Let `caller` call a model. Raises `Unavailable` if the graph refuses the call."""
        stops = caller.request.model_name in self._halting
        request = InferRequest(plan.model, {}, None, parent=caller.request, blocks_loop=stops)
        if caller.request.model_name in self._queues:
            self.graph.admit(request, caller.batch)
        else:
            self.graph.admit_child(request)
        caller.waits_for = self._send(request, plan)
        return caller.waits_for

    def moves(self) -> list[Callable[[], None]]:
        """Return the possible next events; none when everything is finished or stuck."""
        return [*self._takes(), *self._steps()]

    def unfinished(self) -> list[str]:
        """Return the models of the requests in flight."""
        waiting = [flow for queue in self._queues.values() for flow in queue]
        return [flow.request.model_name for flow in [*self.running, *waiting]]

    def settle(self) -> None:
        """Process events until none is possible, without further calls."""
        for flow in self.running:
            if flow.request.model_name in self._queues:  # an ensemble needs its steps
                flow.todo.clear()
        for queue in self._queues.values():
            for flow in queue:
                flow.todo.clear()
        while moves := self.moves():
            moves[0]()

    def _find(self, name: str, _version: int) -> ModelConfig:
        if name not in self._configs:
            raise NotFound(f"there is no model {name}")
        return self._configs[name]

    def _send(self, request: InferRequest, plan: Plan) -> Flow:
        steps = [
            Plan(step.model_name) for step in self._configs[plan.model].ensemble_scheduling.step
        ]
        flow = Flow(request, deque(steps or plan.calls))
        (self.running if steps else self._queues[plan.model]).append(flow)
        return flow

    def _takes(self) -> Iterator[Callable[[], None]]:
        for name, slots in self._slots.items():
            for slot in slots:
                held = any(
                    flow.batch is not None and flow.batch.instance is slot for flow in self.running
                )
                if self._queues[name] and not held:
                    yield lambda name=name, slot=slot: self._take(name, slot)

    def _take(self, name: str, slot: Slot) -> None:
        flow = self._queues[name].popleft()
        flow.request.batch = Batch(
            [flow.request], model=SimpleNamespace(config=self._configs[name]), instance=slot
        )
        if name not in self._decoupled:
            flow.batch = flow.request.batch
            flow.batch.executing = True
        self.running.append(flow)

    def _steps(self) -> Iterator[Callable[[], None]]:
        for flow in self.running:
            if (flow.waits_for is None or flow.waits_for.request.finished) and not self._is_blocked(
                flow
            ):
                yield lambda flow=flow: self._step(flow)

    def _is_blocked(self, flow: Flow) -> bool:
        """Return whether another coroutine blocks the event loop that `flow` needs."""
        return flow.request.model_name in self._halting and any(
            other.request.batch.instance is flow.request.batch.instance
            and other.waits_for is not None
            and not other.waits_for.request.finished
            for other in self.running
            if other is not flow and other.request.model_name in self._halting
        )

    def _step(self, flow: Flow) -> None:
        if not flow.todo:
            self._answer(flow)
            return
        plan = flow.todo.popleft()
        try:
            self.call(flow, plan)
        except Unavailable as error:
            self.refused.append((flow, plan.model, error.message))
            flow.waits_for = None

    def _answer(self, flow: Flow) -> None:
        self.running.remove(flow)
        flow.request.finished = True
        if flow.batch is not None:
            flow.batch.executing = False
        flow.request.batch = None


@cache
def _model(name: str, count: int) -> ModelConfig:
    return normalize(
        model_config(f'name: "{name}" instance_group {{ count: {count} kind: KIND_CPU }}')
    )


@cache
def _ensemble(name: str, models: tuple[str, ...]) -> ModelConfig:
    tensors = [f"t{number}" for number in range(len(models))]
    steps = " ".join(
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "X" value: "{read}" }} '
        f'output_map {{ key: "Y" value: "{made}" }} }}'
        for model, read, made in zip(models, tensors, [*tensors[1:], "Y"], strict=True)
    )
    head = f'name: "{name}" platform: "ensemble" output {{ name: "Y" }} output {{ name: "t1" }}'
    return normalize(model_config(f"{head} ensemble_scheduling {{ {steps} }}"))
