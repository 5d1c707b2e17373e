"""An engine whose models write scripted texts, token by token."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from google.protobuf import text_format

from tritonpy import (
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    NotFound,
    Tensor,
    TritonError,
)
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy.frontend import ModelMetadata, TensorMetadata
from tritonpy.repository import ModelIndex
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ToyEngine

WAIT_S = 30
VLLM = """
backend: "vllm"
model_transaction_policy { decoupled: true }
input { name: "text_input" data_type: TYPE_STRING dims: 1 }
input { name: "stream" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "sampling_parameters" data_type: TYPE_STRING dims: 1 optional: true }
input { name: "exclude_input_in_output" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "return_finish_reason" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "return_logprobs" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "return_num_input_tokens" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "return_num_output_tokens" data_type: TYPE_BOOL dims: 1 optional: true }
output { name: "text_output" data_type: TYPE_STRING dims: -1 }
output { name: "finish_reason" data_type: TYPE_STRING dims: -1 }
output { name: "logprobs" data_type: TYPE_STRING dims: -1 }
output { name: "num_input_tokens" data_type: TYPE_UINT32 dims: 1 }
output { name: "num_output_tokens" data_type: TYPE_UINT32 dims: -1 }
"""
TENSORS = """
backend: "python"
max_batch_size: 4
input { name: "text_input" data_type: TYPE_STRING dims: 1 }
input { name: "stream" data_type: TYPE_BOOL dims: 1 optional: true }
input { name: "max_tokens" data_type: TYPE_INT32 dims: 1 optional: true }
input { name: "stop_words" data_type: TYPE_STRING dims: -1 optional: true }
input { name: "temperature" data_type: TYPE_FP32 dims: 1 optional: true }
output { name: "text_output" data_type: TYPE_STRING dims: -1 }
"""
OTHER = """
backend: "onnxruntime"
input { name: "X" data_type: TYPE_FP32 dims: 1 }
output { name: "Y" data_type: TYPE_FP32 dims: 1 }
"""

Script = Callable[[InferRequest], Iterable[Any]]


class Call:
    """The request of one choice, as a script sees it."""

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        inputs = request.inputs
        text = inputs.get("text_input")
        self.prompt = "" if text is None else text.strings()[0].decode()
        self.json: dict[str, Any] = {
            name: json.loads(tensor.strings()[0])
            for name, tensor in inputs.items()
            if name.endswith("_request")
        }
        sampling = inputs.get("sampling_parameters")
        self.sampling: dict[str, Any] = (
            {} if sampling is None else json.loads(sampling.strings()[0])
        )
        self.stream = "stream" in inputs and bool(inputs["stream"].numpy().ravel()[0])


class ScriptedEngine(ToyEngine):
    """Each model runs `script(call)`, which yields tokens: texts, outputs by name, or errors.

    Without `stream` the texts are joined to one response, as Triton's vLLM backend does.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.configs: dict[str, ModelConfig] = {}
        self.folders: dict[str, str] = {}
        self.unloaded: set[str] = set()
        self.read: frozenset[str] | None = None
        self.calls: list[Call] = []
        self.script: Callable[[Call], Iterable[Any]] = lambda call: ["Hello", " world"]
        self.loads: list[str] = []
        self.cancelled = threading.Event()
        self._pool = ThreadPoolExecutor(64, "scripts")
        self.add("story", VLLM)
        self.add("other", OTHER)

    def add(self, name: str, config: str, folder: str = "") -> None:
        """Add a model or replace it."""
        self.configs[name] = text_format.Parse(config, ModelConfig(name=name))
        self.folders[name] = folder

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown()
        super().__exit__(*exception)

    def infer(self, request: InferRequest) -> None:
        self.model_config(request.model_name)
        self.calls.append(Call(request))
        request.owner = self
        self._pool.submit(self._write, request, self.calls[-1])

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            if not request.finished:
                request.finished = response.final
                request.sink.put(request, response)

    def cancel(self, request: InferRequest) -> None:
        self.cancelled.set()
        request.respond(InferResponse.failed(request, Cancelled("Request was cancelled")))

    def _write(self, request: InferRequest, call: Call) -> None:
        texts: list[str] = []
        last: dict[str, Any] = {}
        try:
            for token in self.script(call):
                if isinstance(token, TritonError):
                    raise token
                outputs = token if isinstance(token, dict) else {"text_output": token}
                if not call.stream:
                    texts.append(outputs.get("text_output", ""))
                    last |= outputs
                elif not request.wait_for_credit():
                    return
                else:
                    request.respond(self._response(request, outputs, count=1, final=False))
            if call.stream:
                request.respond(InferResponse((), request.model_name, 1, empty=True))
                return
            outputs = last | {"text_output": "".join(texts)}
            request.respond(self._response(request, outputs, count=len(texts), final=True))
        except TritonError as error:
            request.respond(InferResponse.failed(request, error))

    def _response(
        self, request: InferRequest, outputs: dict[str, Any], *, count: int, final: bool
    ) -> InferResponse:
        names = {item.name for item in self.configs[request.model_name].output}
        if "num_input_tokens" in names:
            outputs = {
                "num_input_tokens": np.array([7], np.uint32),
                "num_output_tokens": np.array([count], np.uint32),
                **outputs,
            }
        tensors = [
            Tensor.from_numpy(
                name,
                value if isinstance(value, np.ndarray) else np.array([value.encode()], np.object_),
            )
            for name, value in outputs.items()
            if name in names
        ]
        return InferResponse(tensors, request.model_name, 1, request.id, final=final)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        if name not in self.configs or name in self.unloaded:
            raise InvalidArgument(f"Request for unknown model: '{name}' is not found")
        return self.configs[name]

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        config = self.model_config(name)
        batch = [-1] if config.max_batch_size else []
        inputs, outputs = (
            [
                TensorMetadata(
                    item.name, DATATYPE_OF_NUMBER[item.data_type].name, [*batch, *item.dims]
                )
                for item in items
            ]
            for items in (config.input, config.output)
        )
        return ModelMetadata(name, ["1"], config.backend, inputs, outputs)

    def model_folder(self, name: str, version: int = -1) -> str:
        return self.folders.get(name, "")

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        return self.read

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        self.model_config(name)
        return True

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        return [
            ModelIndex(name, "1", "READY") for name in self.configs if name not in self.unloaded
        ]

    def load_model(self, name: str, *_: object, **__: object) -> None:
        if name not in self.configs:
            raise NotFound(f"failed to load '{name}', failed to poll from model repository")
        self.loads.append(f"load {name}")
        self.unloaded.discard(name)

    def unload_model(self, name: str, *_: object, **__: object) -> None:
        self.loads.append(f"unload {name}")
        self.unloaded.add(name)
