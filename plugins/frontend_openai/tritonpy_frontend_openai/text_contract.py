"""The tensors of models that generate text, as Triton's vLLM and TensorRT-LLM backends name them.

Source: `src/model.py` of Triton's vllm_backend, and the inputs of TensorRT-LLM's `ensemble` model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tritonpy import DATATYPES, InferRequest, InferResponse, ParameterValue, Tensor
from tritonpy.frontend import Sink, TensorMetadata
from tritonpy_frontend_openai.errors import unsupported
from tritonpy_frontend_openai.text_models import (
    EMBEDDING_OUTPUT,
    EMBEDDING_REQUEST,
    TEXT_INPUT,
    TEXT_OUTPUT,
    TextModel,
)

KnownParameters = Callable[[str], frozenset[str] | None]
"""Returns the request parameters that a model reads, None for any."""

UNLIMITED = 2**31 - 1
"""max_tokens for the rest of the context. Engines end a response where their context ends."""

_FLAGS = (
    "return_finish_reason",
    "return_num_input_tokens",
    "return_num_output_tokens",
    "return_num_cached_tokens",
)
_ECHO = ("exclude_input_in_output", "sampling_param_exclude_input_from_output")
# Names of the tensors of a parameter, if they differ from its own name.
_TENSOR_NAMES: Mapping[str, Sequence[str]] = {
    "stop": ("stop_words",),
    "top_k": ("top_k", "runtime_top_k"),
    "top_p": ("top_p", "runtime_top_p"),
    "max_tokens": ("max_tokens", "request_output_len"),
    "seed": ("seed", "random_seed"),
}


class GenerationParameters(msgspec.Struct):
    """What to generate, whatever the tensors of the model.

    `prompt` is a text or token IDs. `sampling` has the parameters that the client set, by their
    names in OpenAI's API and in vLLM. `max_tokens` None is the default of the model. `guide` is
    vLLM's `structured_outputs`: {"json": schema} or {"json_object": true}. `logprobs` is the number
    of alternatives per token, None for none.
    """

    prompt: str | list[int]
    stream: bool
    max_tokens: int | None
    sampling: dict[str, Any]
    logprobs: int | None = None
    adapter: str = ""
    guide: dict[str, Any] | None = None


class Piece(msgspec.Struct):
    """One response of a model: the next part of its text.

    `finish_reason` is None while the text is incomplete. Counts are None if the model does not
    report them. `completion_tokens` counts the tokens of this piece. `logprobs` is vLLM's list: one
    object per token. `embedding` is an array of an encoder, which has no text.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    logprobs: list[dict[str, Any]] | None = None
    embedding: Any = None


def build_request(
    model: TextModel,
    parameters: GenerationParameters,
    sink: Sink,
    known: KnownParameters,
    *,
    drops_unknown: bool,
) -> InferRequest:
    """Return the request for a model.

    A parameter that the model has no tensor for becomes a request parameter. One that the model
    does not read is dropped with `drops_unknown`, else an error. Raises ApiError.
    """
    inputs = _text_inputs(model, parameters)
    request_parameters: dict[str, ParameterValue] = {}
    if model.has_sampling_parameters:
        _add(inputs, model, "sampling_parameters", [_sampling_json(parameters)])
    else:
        read = known(model.name)
        for name, value in _single_parameters(model, parameters).items():
            tensor = next(
                (each for each in _TENSOR_NAMES.get(name, (name,)) if each in model.inputs), None
            )
            if tensor is not None:
                _add(inputs, model, tensor, value if isinstance(value, list) else [value])
            elif read is None or name in read:
                request_parameters[name] = _parameter(value)
            elif not drops_unknown:
                raise unsupported(name, f"model '{model.name}' has no input '{name}'")
    return InferRequest(
        model.name,
        inputs,
        sink,
        parameters=request_parameters,
        accepts_decoupled=True,
    )


def read_piece(response: InferResponse) -> Piece:
    """Return the content of a response that is no error."""
    outputs = {tensor.name: tensor for tensor in response.outputs}
    text = outputs.get(TEXT_OUTPUT)
    reason = outputs.get("finish_reason")
    logprobs = outputs.get("logprobs")
    return Piece(
        _text(text) if text is not None else "",
        _finish_reason(_text(reason)) if reason is not None else None,
        _count(outputs.get("num_input_tokens")),
        _count(outputs.get("num_output_tokens")),
        _count(outputs.get("num_cached_tokens")),
        _logprobs(_text(logprobs)) if logprobs is not None else None,
        outputs[EMBEDDING_OUTPUT].numpy() if EMBEDDING_OUTPUT in outputs else None,
    )


def embedding_request(
    model: TextModel, prompt: str | list[int], dimensions: int | None, sink: Sink
) -> InferRequest:
    """Return the request for the embedding of a text or of token IDs. Raises ApiError."""
    if model.takes_embedding_requests:
        pooling = {} if dimensions is None else {"dimensions": [dimensions]}
        body = {"input": prompt, "pooling_params": pooling}
        return json_request(model, EMBEDDING_REQUEST, body, sink)
    inputs: dict[str, Tensor] = {}
    if isinstance(prompt, str):
        _add(inputs, model, TEXT_INPUT, [prompt])
    elif "input_ids" in model.inputs:
        _add(inputs, model, "input_ids", prompt)
    else:
        raise unsupported("input", f"model '{model.name}' takes text, not token IDs")
    return InferRequest(model.name, inputs, sink, accepts_decoupled=True)


def json_request(model: TextModel, name: str, value: Any, sink: Sink) -> InferRequest:
    """Return a request with `value` as JSON in the input `name`, such as `tokenize_request`."""
    inputs: dict[str, Tensor] = {}
    _add(inputs, model, name, [json.dumps(value)])
    for flag in _FLAGS:
        if flag in model.inputs:
            _add(inputs, model, flag, [True])
    return InferRequest(model.name, inputs, sink, accepts_decoupled=True)


def _text_inputs(model: TextModel, parameters: GenerationParameters) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}
    prompt = parameters.prompt
    if isinstance(prompt, str):
        _add(inputs, model, TEXT_INPUT, [prompt])
    elif "input_ids" in model.inputs:
        _add(inputs, model, "input_ids", prompt)
    else:
        raise unsupported("prompt", f"model '{model.name}' takes text, not token IDs")
    flags = {"stream": parameters.stream, "return_logprobs": parameters.logprobs is not None}
    for name, value in (*flags.items(), *((each, True) for each in (*_ECHO, *_FLAGS))):
        if name in model.inputs:
            _add(inputs, model, name, [value])
    if parameters.logprobs is not None and "return_logprobs" not in model.inputs:
        raise unsupported("logprobs", f"model '{model.name}' reports no log probabilities")
    return inputs


def _sampling_json(parameters: GenerationParameters) -> str:
    values = dict(parameters.sampling)
    if parameters.max_tokens is not None:
        values["max_tokens"] = parameters.max_tokens
    if parameters.logprobs is not None:
        values["logprobs"] = parameters.logprobs
    if parameters.adapter:
        values["lora_name"] = parameters.adapter
    if parameters.guide is not None:
        values["structured_outputs"] = json.dumps(parameters.guide)
    return json.dumps(values)


def _single_parameters(model: TextModel, parameters: GenerationParameters) -> dict[str, Any]:
    values = dict(parameters.sampling)
    if parameters.max_tokens is not None:
        values["max_tokens"] = parameters.max_tokens
    if parameters.adapter:
        values["lora_name"] = parameters.adapter
    if parameters.guide is None:
        return values
    if "guided_decoding_guide" in model.inputs:
        schema = parameters.guide.get("json")
        values["guided_decoding_guide_type"] = "json" if schema is None else "json_schema"
        values["guided_decoding_guide"] = "" if schema is None else json.dumps(schema)
    else:
        values["structured_outputs"] = json.dumps(parameters.guide)
    return values


def _add(inputs: dict[str, Tensor], model: TextModel, name: str, values: list[Any]) -> None:
    expected = model.inputs[name]
    shape = _fitted(expected, len(values))
    if expected.datatype == "BYTES":
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        encoded = [text.encode("utf-8", "replace") for text in texts]
        inputs[name] = Tensor.from_numpy(name, np.array(encoded, np.object_).reshape(shape))
        return
    dtype = DATATYPES[expected.datatype].dtype
    try:
        array = np.array(values, dtype).reshape(shape)
    except (ValueError, OverflowError, TypeError) as error:
        raise unsupported(name, f"input '{name}' cannot hold the value: {error}") from None
    inputs[name] = Tensor.from_numpy(name, array)


def _fitted(expected: TensorMetadata, count: int) -> list[int]:
    """Return the shape for `count` values: the last variable dimension holds them."""
    shape = [1 if dim == -1 else dim for dim in expected.shape]
    if count != 1:
        for axis in reversed(range(len(shape))):
            if expected.shape[axis] == -1:
                shape[axis] = count
                break
    return shape


def _parameter(value: Any) -> ParameterValue:
    return value if isinstance(value, str | bool | int | float) else json.dumps(value)


def _text(tensor: Tensor) -> str:
    return b"".join(tensor.strings()).decode("utf-8", "replace")


def _finish_reason(text: str) -> str | None:
    if text in {"", "None"}:
        return None
    return text if text in {"length", "tool_calls", "content_filter"} else "stop"


def _count(tensor: Tensor | None) -> int | None:
    if tensor is None:
        return None
    values = tensor.numpy().ravel()
    return int(values[0]) if len(values) else None


def _logprobs(text: str) -> list[dict[str, Any]] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return [each for each in value if each] if isinstance(value, list) else None
