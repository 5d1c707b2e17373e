"""The tensors of language models, as Triton's vllm_backend names them.

Inputs that Triton's backend lacks: `input_ids`, `return_num_cached_tokens`, `tokenize_request` and
`rerank_request`. The requests for embeddings, tokens and ranks are JSON, as is what answers them in
`text_output`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

EMBEDDING_REQUEST = "embedding_request"
TOKENIZE_REQUEST = "tokenize_request"
RERANK_REQUEST = "rerank_request"
RETURNED = (
    "finish_reason",
    "cumulative_logprob",
    "logprobs",
    "num_input_tokens",
    "num_output_tokens",
    "num_cached_tokens",
)


def _tensor(name: str, datatype: str, size: int, *, optional: bool = True) -> dict[str, Any]:
    return {"name": name, "data_type": datatype, "dims": [size], "optional": optional}


_INPUTS = [
    # Optional, since a request has either a text, token IDs, or one of the JSON requests.
    _tensor("text_input", "TYPE_STRING", 1),
    _tensor("input_ids", "TYPE_INT32", -1),
    _tensor("sampling_parameters", "TYPE_STRING", 1),
    _tensor("stream", "TYPE_BOOL", 1),
    _tensor("exclude_input_in_output", "TYPE_BOOL", 1),
    *(_tensor(f"return_{name}", "TYPE_BOOL", 1) for name in RETURNED),
    _tensor(EMBEDDING_REQUEST, "TYPE_STRING", 1),
    _tensor(TOKENIZE_REQUEST, "TYPE_STRING", 1),
]
_OUTPUTS = [
    {"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "finish_reason", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "cumulative_logprob", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "logprobs", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "num_input_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
    {"name": "num_output_tokens", "data_type": "TYPE_UINT32", "dims": [-1]},
    {"name": "num_cached_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
]


def complete_config(
    config: Any, *further: dict[str, Any], omitted: Container[str] = frozenset()
) -> Any:
    """Add missing inputs and outputs to `config`.

    `further` are inputs of this backend only, `omitted` those that the model does not read. The
    model becomes decoupled and does not batch: engines batch tokens themselves.
    """
    given = config.as_dict()
    names = {each["name"] for each in (*given["input"], *given["output"])}
    for tensor in (*_INPUTS, *further):
        if tensor["name"] not in names and tensor["name"] not in omitted:
            config.add_input(tensor)
    for tensor in _OUTPUTS:
        if tensor["name"] not in names:
            config.add_output(tensor)
    config.set_model_transaction_policy({"decoupled": True})
    config.set_max_batch_size(0)
    return config


def optional_input(name: str, datatype: str, size: int) -> dict[str, Any]:
    """Return the description of a further input for `complete_config`."""
    return _tensor(name, datatype, size)


@dataclass
class TextRequest:
    """A request for text. `prompt` is a text or token IDs; `returned` names additional outputs.

    `sampling` has the sampling parameters as the client sent them.
    """

    prompt: str | list[int]
    sampling: dict[str, Any]
    stream: bool
    prepends_prompt: bool
    returned: frozenset[str]


def read_text_request(request: Any) -> TextRequest:
    """Return the request. Raises ValueError for invalid values."""
    stream = _flag(request, "stream")
    excludes = input_array(request, "exclude_input_in_output")
    prepends = not stream if excludes is None else not bool(excludes.ravel()[0])
    if prepends and stream:
        raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
    sampling = _sampling(request)
    return TextRequest(_prompt(request), sampling, stream, prepends, returned_outputs(request))


def json_request(request: Any, name: str) -> dict[str, Any] | None:
    """Return the object in the JSON input `name`, None without it. Raises ValueError."""
    array = input_array(request, name)
    if array is None:
        return None
    value = json.loads(array.ravel()[0])
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object")  # noqa: TRY004
    return value


def read_tokenize_request(values: dict[str, Any]) -> tuple[str | list[int], bool]:
    """Return the text or the token IDs of a tokenize request, and whether to add special tokens.

    Token IDs are to become a text. Raises ValueError.
    """
    tokens, text = values.get("tokens"), values.get("text")
    if isinstance(tokens, list) and all(isinstance(each, int) for each in tokens):
        return tokens, False
    if not isinstance(text, str):
        raise ValueError("tokenize_request needs 'text' or 'tokens'")  # noqa: TRY004
    return text, bool(values.get("add_special_tokens", True))


def returned_outputs(request: Any) -> frozenset[str]:
    """Return the names of the additional outputs that the request asks for."""
    return frozenset(name for name in RETURNED if _flag(request, f"return_{name}"))


def input_array(request: Any, name: str) -> Any:
    """Return the array of an input, None without it."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()


def _sampling(request: Any) -> dict[str, Any]:
    array = input_array(request, "sampling_parameters")
    values = json.loads(request.parameters() if array is None else array.ravel()[0])
    if not isinstance(values, dict):
        raise ValueError("sampling_parameters must be a JSON object")  # noqa: TRY004
    return values


def _prompt(request: Any) -> str | list[int]:
    tokens = input_array(request, "input_ids")
    if tokens is not None:
        ids: list[int] = tokens.ravel().tolist()
        return ids
    array = input_array(request, "text_input")
    if array is None:
        raise ValueError("the request has neither text_input nor input_ids")
    value = array.ravel()[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _flag(request: Any, name: str) -> bool:
    array = input_array(request, name)
    return array is not None and bool(array.ravel()[0])


@dataclass
class TextPart:
    """One response of a model: a part of its text, or all of it.

    `finish_reason` is "None" while the text is incomplete, as in vllm_backend. `logprobs` has one
    object per token: {token id: {"logprob", "rank", "decoded_token"}}, the chosen token first.
    """

    text: str
    finish_reason: str = "None"
    output_tokens: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cumulative_logprob: float = 0.0
    logprobs: Sequence[dict[Any, Any]] | None = None


def text_response(parts: Sequence[TextPart], returned: frozenset[str]) -> Any:
    """Return the response for the parts of all sequences of a request, at least one."""
    first = parts[0]
    tensors = [_strings("text_output", [each.text for each in parts])]
    if "finish_reason" in returned:
        tensors.append(_strings("finish_reason", [each.finish_reason for each in parts]))
    if "cumulative_logprob" in returned:
        sums = np.array([each.cumulative_logprob for each in parts], np.float32)
        tensors.append(pb_utils.Tensor("cumulative_logprob", sums))
    if "logprobs" in returned:
        tensors.append(_strings("logprobs", [json.dumps(each.logprobs) for each in parts]))
    if "num_input_tokens" in returned:
        tensors.append(_counts("num_input_tokens", [first.input_tokens]))
    if "num_output_tokens" in returned:
        tensors.append(_counts("num_output_tokens", [each.output_tokens for each in parts]))
    if "num_cached_tokens" in returned:
        tensors.append(_counts("num_cached_tokens", [first.cached_tokens]))
    return pb_utils.InferenceResponse(tensors)


def json_response(value: Any, input_tokens: int, returned: frozenset[str]) -> Any:
    """Return the response for `value`, an embedding or the answer to another JSON request."""
    tensors = [_strings("text_output", [json.dumps(value)])]
    if "num_input_tokens" in returned:
        tensors.append(_counts("num_input_tokens", [input_tokens]))
    if "num_output_tokens" in returned:
        tensors.append(_counts("num_output_tokens", [0]))
    return pb_utils.InferenceResponse(tensors)


def error_response(message: str, code: Any = None) -> Any:
    """Return a response with an error."""
    error = pb_utils.TritonError(message) if code is None else pb_utils.TritonError(message, code)
    return pb_utils.InferenceResponse(error=error)


def _strings(name: str, values: Sequence[str]) -> Any:
    encoded = [value.encode("utf-8", "replace") for value in values]
    return pb_utils.Tensor(name, np.array(encoded, np.object_))


def _counts(name: str, values: Sequence[int]) -> Any:
    return pb_utils.Tensor(name, np.array(values, np.uint32))
