"""A scheduler without instances: it sends the steps of an ensemble to the engine and never waits."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from tritonpy.api.scheduler import Scheduler, SchedulerContext
from tritonpy_config.model_fit import called_model
from tritonpy_protos.model_config_pb2 import ModelEnsembling
from tritonpy_types import CallbackSink, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Cancelled, TritonError


class EnsembleScheduler(Scheduler):
    """Starts a flow per request; no state is kept between requests."""

    uses_instances = False

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._flows: WeakKeyDictionary[InferRequest, _Flow] = WeakKeyDictionary()

    def enqueue(self, request: InferRequest) -> None:
        flow = self._flows[request] = _Flow(self, request)
        flow.advance(request.inputs)
        if request.cancelled:  # cancelled before the flow existed
            flow.cancel()

    def cancel(self, request: InferRequest) -> None:
        if request in self._flows:
            self._flows[request].cancel()


class _Flow:
    """One request in progress: each step starts when all its inputs are available."""

    def __init__(self, scheduler: EnsembleScheduler, request: InferRequest) -> None:
        self._engine = scheduler.context.engine
        self._config = scheduler.context.config
        self._request = request
        self._lock = threading.Lock()
        self._pool: dict[str, Tensor] = {}
        self._waiting = list(self._config.ensemble_scheduling.step)
        self._running: list[InferRequest] = []
        self._finished = False
        self._sink = CallbackSink(self._answered)

    def advance(self, tensors: dict[str, Tensor]) -> None:
        """Add `tensors` to the pool and start steps; respond when every output is available."""
        with self._lock:
            self._pool |= tensors
            startable = [
                step for step in self._waiting if set(step.input_map.values()) <= set(self._pool)
            ]
            self._waiting = [step for step in self._waiting if step not in startable]
            children = [self._child(step) for step in startable]
            self._running += children
            names = [output.name for output in self._config.output]
            complete = not self._finished and all(name in self._pool for name in names)
            self._finished = self._finished or complete
        for child in children:
            try:
                self._engine.infer(child)
            except TritonError as error:
                self._fail(error)
        if complete:
            request = self._request
            outputs = [self._pool[name] for name in names]
            request.respond(
                InferResponse(outputs, request.model_name, request.model_version, request.id)
            )

    def cancel(self) -> None:
        """Cancel the running steps; the response is sent immediately."""
        with self._lock:
            running = list(self._running)
        for child in running:
            child.cancel()
        self._fail(Cancelled("Request cancelled"))

    def _child(self, step: ModelEnsembling.Step) -> InferRequest:
        parent = self._request
        inputs = {
            name: _renamed(self._pool[tensor], name) for name, tensor in step.input_map.items()
        }
        return InferRequest(
            called_model(step),
            inputs,
            self._sink,
            step.model_version,
            id=parent.id,
            parent=parent,
            deadline_ns=parent.deadline_ns,
            tag=step,
        )

    def _answered(self, child: InferRequest, response: InferResponse) -> None:
        with self._lock:
            self._running.remove(child)
        if response.error is not None:
            self._fail(response.error)
            return
        tensors = {tensor.name: tensor for tensor in response.outputs}
        self.advance(
            {
                target: _renamed(tensors[name], target)
                for name, target in child.tag.output_map.items()
            }
        )

    def _fail(self, error: TritonError) -> None:
        with self._lock:
            if self._finished:
                return
            self._finished = True
            self._waiting = []
        self._request.respond(InferResponse.failed(self._request, error))


def _renamed(tensor: Tensor, name: str) -> Tensor:
    return Tensor(name, tensor.datatype, tensor.shape, tensor.data, tensor.device)
