"""Members of an ensemble that answer when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tritonpy import (
    Cancelled,
    InferRequest,
    InferResponse,
    NotFound,
    ParameterValue,
    SchedulerContext,
    Tensor,
    TritonError,
)
from tritonpy.testing import ToyEngine, Witness
from tritonpy.testing.parse import model_config
from tritonpy_ensemble.scheduler import EnsembleScheduler
from tritonpy_protos.model_config_pb2 import ModelConfig


def member(name: str, inputs: str = "IN", outputs: str = "OUT", *, batch: int = 0, decoupled: bool = False) -> str:
    """Return the configuration of a model of INT32 tensors; the names are separated by spaces."""
    put = "".join(
        f'input {{ name: "{each}" data_type: TYPE_INT32 dims: -1 optional: true }} ' for each in inputs.split()
    )
    got = "".join(f'output {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in outputs.split())
    policy = "model_transaction_policy { decoupled: true }" if decoupled else ""
    return f'name: "{name}" backend: "b" max_batch_size: {batch} {put} {got} {policy}'


def step(model: str, inputs: str, outputs: str, version: int = -1) -> str:
    """Return a step; `inputs` and `outputs` are pairs "NAME=tensor", or names that are equal on both sides."""
    maps = "".join(
        f'{kind} {{ key: "{pair.partition("=")[0]}" value: "{pair.rpartition("=")[2]}" }} '
        for kind, pairs in (("input_map", inputs), ("output_map", outputs))
        for pair in pairs.split()
    )
    return f'step {{ model_name: "{model}" model_version: {version} {maps} }} '


def ensemble(steps: str, inputs: str = "IN", outputs: str = "OUT", more: str = "", most: int = 0) -> ModelConfig:
    """Return the configuration of an ensemble of INT32 tensors."""
    put = "".join(f'input {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in inputs.split())
    got = "".join(f'output {{ name: "{each}" data_type: TYPE_INT32 dims: -1 }} ' for each in outputs.split())
    limit = f"max_inflight_requests: {most}" if most else ""
    return model_config(f'name: "e" platform: "ensemble" {put} {got} {more} ensemble_scheduling {{ {steps} {limit} }}')


DECOUPLED = "model_transaction_policy { decoupled: true }"


class Stage(ToyEngine):
    """An engine whose models answer by `answer` and `fail`, or at once by the function `at_once`. It owns their requests.

    `calls` lists them in the order in which they came, `open` those without a final answer.
    """

    def __init__(
        self, *members: str, at_once: Callable[[InferRequest], Mapping[str, Sequence[int]]] | None = None
    ) -> None:
        super().__init__(())
        self.configs = {config.name: config for config in map(model_config, members)}
        self.calls: list[InferRequest] = []
        self.open: list[InferRequest] = []
        self.cancelled: list[InferRequest] = []
        self.refusal: Exception | None = None
        self._at_once = at_once

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        if name not in self.configs:
            raise NotFound(f"Request for unknown model: '{name}' is not found")
        return self.configs[name]

    def infer(self, request: InferRequest) -> None:
        if self.refusal is not None:
            raise self.refusal
        assert request.work is not None
        request.owner = self
        shapes = [tensor.shape for tensor in request.inputs.values()]
        if self.configs[request.model_name].max_batch_size and shapes:
            request.batch_size = shapes[0][0]
        self.calls.append(request)
        self.open.append(request)
        if self._at_once is not None:
            self.answer(request, **self._at_once(request))

    def answer(
        self,
        request: InferRequest,
        *,
        final: bool = True,
        parameters: Mapping[str, ParameterValue] | None = None,
        **outputs: Sequence[int],
    ) -> None:
        """Answer a call with these outputs."""
        tensors = [ints(name, values) for name, values in outputs.items()]
        self._send(request, InferResponse(tensors, parameters=parameters or {}, final=final))

    def give(self, request: InferRequest, *tensors: Tensor) -> None:
        """Answer a call with these tensors."""
        self._send(request, InferResponse(tensors))

    def end(self, request: InferRequest) -> None:
        """Say of a call that this was all."""
        self._send(request, InferResponse((), empty=True))

    def fail(self, request: InferRequest, error: TritonError) -> None:
        """Answer a call with an error."""
        self._send(request, InferResponse.failed(request, error))

    def cancel(self, request: InferRequest) -> None:
        """Take note of it: a member that runs may go on."""
        self.cancelled.append(request)

    def obey(self) -> None:
        """Answer the calls that were cancelled as a queue does."""
        for call in self.cancelled:
            if not call.answered:
                self.fail(call, Cancelled("Request cancelled"))

    def _send(self, request: InferRequest, response: InferResponse) -> None:
        assert not request.answered, "the test answers twice"
        request.answered = response.final
        if response.final:
            self.open.remove(request)
        request.sink.put(request, response)


def ints(name: str, values: Sequence[int]) -> Tensor:
    """Return an INT32 tensor."""
    return Tensor.from_numpy(name, np.asarray(values, np.int32))


class Play:
    """An ensemble on a stage, and the witness of its answers."""

    def __init__(self, config: ModelConfig, stage: Stage) -> None:
        self.stage = stage
        self.witness = Witness(on_cancel=self._cancelled)
        self.scheduler = EnsembleScheduler(
            SchedulerContext("e", 1, config, stage, lambda _name: None, lambda: None)  # type: ignore[arg-type, return-value]
        )

    def ask(self, **fields: object) -> InferRequest:
        """Send a request; `IN` and whatever is a list is an input."""
        inputs = {name: ints(name, value) for name, value in fields.items() if isinstance(value, list)}
        others = {name: value for name, value in fields.items() if name not in inputs}
        request = InferRequest("e", inputs, others.pop("sink", self.witness.sink), **others)  # type: ignore[arg-type]
        request.owner = self.witness
        if request.sink is not self.witness.sink:
            request.owner = _Passing(self.witness)
        self.scheduler.enqueue(request)
        return request

    def answers(self, request: InferRequest) -> list[dict[str, list[int]]]:
        """Return the data of the answers so far; raises the error that one carries."""
        found = []
        for response in self.witness.answers(request):
            if response.error is not None:
                raise response.error
            if not response.empty:
                found.append({tensor.name: tensor.numpy().ravel().tolist() for tensor in response.outputs})
        return found

    def flags(self, request: InferRequest) -> list[tuple[bool, bool]]:
        """Return of each answer whether it is final, and whether it is empty."""
        return [(response.final, response.empty) for response in self.witness.answers(request)]

    def over(self) -> bool:
        """Return whether nothing is left of any request."""
        return not self.scheduler._runs and not self.stage.open

    def _cancelled(self, request: InferRequest) -> None:
        self.scheduler.cancel(request)


class _Passing:
    """Lets the answers pass the request's own sink as well."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        self._witness.answer(requests, responses)
        for request, response in zip(requests, responses, strict=True):
            request.sink.put(request, response)

    def reschedule(self, request: InferRequest) -> None:
        raise NotImplementedError

    def cancel(self, request: InferRequest) -> None:
        self._witness.cancel(request)


def play(config: ModelConfig, *members: str, **stage: object) -> Play:
    """Return an ensemble with its members."""
    return Play(config, Stage(*members, **stage))  # type: ignore[arg-type]
