"""An engine whose models respond on command of the test, and an ensemble harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tritonpy import (
    Cancelled,
    InferRequest,
    InferResponse,
    NotFound,
    ParameterValue,
    Tensor,
    TritonError,
)
from tritonpy.scheduling import SchedulerContext
from tritonpy_ensemble.scheduler import EnsembleScheduler
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import RecordingSink, ToyEngine
from tritonpy_testing.parse import model_config


def member(
    name: str, inputs: str = "IN", outputs: str = "OUT", *, batch: int = 0, decoupled: bool = False
) -> str:
    """Return a model configuration with INT32 tensors. Names are separated by spaces."""
    input_text = "".join(
        f'input {{ name: "{each}" data_type: TYPE_INT32 dims: -1 optional: true }} '
        for each in inputs.split()
    )
    output_text = "".join(
        f'output {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in outputs.split()
    )
    policy = "model_transaction_policy { decoupled: true }" if decoupled else ""
    return (
        f'name: "{name}" backend: "b" max_batch_size: {batch} {input_text} {output_text} {policy}'
    )


def step(model: str, inputs: str, outputs: str, version: int = -1) -> str:
    """Return a step.

    `inputs` and `outputs` are pairs "NAME=tensor", or names equal on both sides.
    """
    maps = "".join(
        f'{kind} {{ key: "{pair.partition("=")[0]}" value: "{pair.rpartition("=")[2]}" }} '
        for kind, pairs in (("input_map", inputs), ("output_map", outputs))
        for pair in pairs.split()
    )
    return f'step {{ model_name: "{model}" model_version: {version} {maps} }} '


def ensemble(
    steps: str, inputs: str = "IN", outputs: str = "OUT", more: str = "", most: int = 0
) -> ModelConfig:
    """Return an ensemble configuration with INT32 tensors."""
    input_text = "".join(
        f'input {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in inputs.split()
    )
    output_text = "".join(
        f'output {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in outputs.split()
    )
    limit = f"max_inflight_requests: {most}" if most else ""
    return model_config(
        f'name: "e" platform: "ensemble" {input_text} {output_text} {more} ensemble_scheduling {{ {steps} {limit} }}'
    )


DECOUPLED = "model_transaction_policy { decoupled: true }"


class ScriptedEngine(ToyEngine):
    """An engine whose models respond by `respond` and `fail`, or by the function `immediate`.

    It owns their requests. `calls` lists them in order, `in_flight` those without a final response.
    """

    def __init__(
        self,
        *members: str,
        immediate: Callable[[InferRequest], Mapping[str, Sequence[int]]] | None = None,
    ) -> None:
        super().__init__(())
        self.configs = {config.name: config for config in map(model_config, members)}
        self.calls: list[InferRequest] = []
        self.in_flight: list[InferRequest] = []
        self.cancelled: list[InferRequest] = []
        self.refusal: Exception | None = None
        self._immediate = immediate

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        if name not in self.configs:
            raise NotFound(f"Request for unknown model: '{name}' is not found")
        return self.configs[name]

    def infer(self, request: InferRequest) -> None:
        if self.refusal is not None:
            raise self.refusal
        assert request.compute_times is not None
        request.owner = self
        shapes = [tensor.shape for tensor in request.inputs.values()]
        if self.configs[request.model_name].max_batch_size and shapes:
            request.batch_size = shapes[0][0]
        self.calls.append(request)
        self.in_flight.append(request)
        if self._immediate is not None:
            self.respond(request, **self._immediate(request))

    def respond(
        self,
        request: InferRequest,
        *,
        final: bool = True,
        parameters: Mapping[str, ParameterValue] | None = None,
        **outputs: Sequence[int],
    ) -> None:
        """Respond to a call with these outputs."""
        tensors = [ints(name, values) for name, values in outputs.items()]
        self._send(request, InferResponse(tensors, parameters=parameters or {}, final=final))

    def respond_with(self, request: InferRequest, *tensors: Tensor) -> None:
        """Respond to a call with these tensors."""
        self._send(request, InferResponse(tensors))

    def end_stream(self, request: InferRequest) -> None:
        """Send the empty final response of a call."""
        self._send(request, InferResponse((), empty=True))

    def fail(self, request: InferRequest, error: TritonError) -> None:
        """Respond to a call with an error."""
        self._send(request, InferResponse.failed(request, error))

    def cancel(self, request: InferRequest) -> None:
        """Record the cancellation. A running member may continue."""
        self.cancelled.append(request)

    def fail_cancelled(self) -> None:
        """Fail the cancelled calls as a queue does."""
        for call in self.cancelled:
            if not call.finished:
                self.fail(call, Cancelled("Request cancelled"))

    def _send(self, request: InferRequest, response: InferResponse) -> None:
        assert not request.finished, "the test responds twice"
        request.finished = response.final
        if response.final:
            self.in_flight.remove(request)
        request.sink.put(request, response)


def ints(name: str, values: Sequence[int]) -> Tensor:
    """Return an INT32 tensor."""
    return Tensor.from_numpy(name, np.asarray(values, np.int32))


class EnsembleHarness:
    """An ensemble with its scripted engine and a recording sink."""

    def __init__(self, config: ModelConfig, engine: ScriptedEngine) -> None:
        self.engine = engine
        self.recorder = RecordingSink(on_cancel=self._cancelled)
        self.scheduler = EnsembleScheduler(
            SchedulerContext("e", 1, config, engine, lambda _name: None, lambda: None)  # type: ignore[arg-type, return-value]
        )

    def send(self, **fields: object) -> InferRequest:
        """Send a request. `IN` and every list is an input."""
        inputs = {
            name: ints(name, value) for name, value in fields.items() if isinstance(value, list)
        }
        others = {name: value for name, value in fields.items() if name not in inputs}
        request = InferRequest("e", inputs, others.pop("sink", self.recorder.sink), **others)  # type: ignore[arg-type]
        request.owner = self.recorder
        if request.sink is not self.recorder.sink:
            request.owner = _ForwardingOwner(self.recorder)
        self.scheduler.enqueue(request)
        return request

    def responses(self, request: InferRequest) -> list[dict[str, list[int]]]:
        """Return the data of the responses so far. Raises the error of a response."""
        found = []
        for response in self.recorder.responses(request):
            if response.error is not None:
                raise response.error
            if not response.empty:
                found.append(
                    {tensor.name: tensor.numpy().ravel().tolist() for tensor in response.outputs}
                )
        return found

    def flags(self, request: InferRequest) -> list[tuple[bool, bool]]:
        """Return (final, empty) of each response."""
        return [(response.final, response.empty) for response in self.recorder.responses(request)]

    def is_idle(self) -> bool:
        """Return whether no request is in flight."""
        return not self.scheduler._runs and not self.engine.in_flight

    def _cancelled(self, request: InferRequest) -> None:
        self.scheduler.cancel(request)


class _ForwardingOwner:
    """Forwards the responses to the request's own sink, too."""

    def __init__(self, recorder: RecordingSink) -> None:
        self._recorder = recorder

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        self._recorder.respond(requests, responses)
        for request, response in zip(requests, responses, strict=True):
            request.sink.put(request, response)

    def reschedule(self, request: InferRequest) -> None:
        raise NotImplementedError

    def cancel(self, request: InferRequest) -> None:
        self._recorder.cancel(request)


def make_harness(config: ModelConfig, *members: str, **options: object) -> EnsembleHarness:
    """Return an ensemble with its members."""
    return EnsembleHarness(config, ScriptedEngine(*members, **options))  # type: ignore[arg-type]
