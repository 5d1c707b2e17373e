"""Requests as vLLM's engine takes them, read from the tensors and parameters of a request."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import triton_python_backend_utils as pb_utils

RETURNED = (
    "finish_reason",
    "cumulative_logprob",
    "logprobs",
    "num_input_tokens",
    "num_output_tokens",
    "num_cached_tokens",
)
_TYPES = {int: int, float: float, bool: bool, str: str, Optional[int]: int}  # noqa: UP045 - vLLM


class AdapterFault(Exception):
    """The request names a LoRA adapter that the model does not have."""


@dataclass
class GenerateCall:
    """A request for text. `returned` are the names of the additional outputs."""

    prompt: Any
    sampling: Any
    stream: bool
    prepends_prompt: bool
    returned: frozenset[str]
    adapter: str | None = None


@dataclass
class EmbedCall:
    """A request for the embedding of a text or of token IDs."""

    prompt: Any
    pooling: Any
    returned: frozenset[str]


def is_embedding(request: Any) -> bool:
    """Return whether the request asks for an embedding."""
    return _tensor(request, "embedding_request") is not None


def read_generate(request: Any, adapters: Mapping[str, str] | None) -> GenerateCall:
    """Return the call. Raises AdapterFault, and ValueError for invalid values."""
    stream = _flag(request, "stream")
    excludes = _tensor(request, "exclude_input_in_output")
    prepends = not stream if excludes is None else not bool(excludes.ravel()[0])
    if prepends and stream:
        raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
    values = _sampling_values(request)
    adapter = values.pop("lora_name", None)
    if adapter is not None:
        if adapters is None:
            raise AdapterFault("LoRA feature is not enabled.")
        if adapter not in adapters:
            raise AdapterFault(
                f"LoRA {adapter} is not supported, we currently support {list(adapters)}"
            )
    return GenerateCall(
        _prompt(request),
        sampling_parameters(values, stream=stream),
        stream,
        prepends,
        _returned(request),
        adapter,
    )


def read_embed(request: Any) -> EmbedCall:
    """Return the call. Raises ValueError for invalid values."""
    from vllm.inputs import TokensPrompt
    from vllm.pooling_params import PoolingParams

    tensor = _tensor(request, "embedding_request")
    values = json.loads(tensor.ravel()[0])
    prompt = values["input"]
    if isinstance(prompt, list):
        prompt = TokensPrompt(prompt_token_ids=prompt)
    dimensions = values.get("pooling_params", {}).get("dimensions")
    if isinstance(dimensions, list):
        dimensions = dimensions[0]
    return EmbedCall(prompt, PoolingParams(dimensions=dimensions, task="embed"), _returned(request))


def sampling_parameters(values: dict[str, Any], *, stream: bool) -> Any:
    """Return vLLM's SamplingParams. Texts become the types of its fields, as in vllm_backend."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    fields = SamplingParams.__annotations__
    for name, value in values.items():
        if name == "structured_outputs":
            given = json.loads(value) if isinstance(value, str) else value
            values[name] = StructuredOutputsParams(
                **{key: each for key, each in given.items() if each is not None}
            )
        elif name == "logit_bias" and isinstance(value, dict):
            values[name] = {int(token): float(bias) for token, bias in value.items()}
        elif fields.get(name) in _TYPES and value is not None:
            values[name] = _TYPES[fields[name]](value)
    values["output_kind"] = RequestOutputKind.DELTA if stream else RequestOutputKind.FINAL_ONLY
    return SamplingParams(**values)


def _sampling_values(request: Any) -> dict[str, Any]:
    tensor = _tensor(request, "sampling_parameters")
    text = request.parameters() if tensor is None else tensor.ravel()[0]
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("sampling_parameters must be a JSON object")  # noqa: TRY004
    return values


def _prompt(request: Any) -> Any:
    tokens = _tensor(request, "input_ids")
    if tokens is not None:
        return {"prompt_token_ids": tokens.ravel().tolist()}
    tensor = _tensor(request, "text_input")
    if tensor is None:
        raise ValueError("the request has neither text_input nor input_ids")
    text = _decoded(tensor.ravel()[0])
    images = _tensor(request, "image")
    if images is None or not images.size:
        return text
    from PIL import Image

    decoded = [
        Image.open(io.BytesIO(base64.b64decode(each))).convert("RGB") for each in images.ravel()
    ]
    return {"prompt": text, "multi_modal_data": {"image": decoded}}


def _returned(request: Any) -> frozenset[str]:
    return frozenset(name for name in RETURNED if _flag(request, f"return_{name}"))


def _flag(request: Any, name: str) -> bool:
    tensor = _tensor(request, name)
    return tensor is not None and bool(tensor.ravel()[0])


def _tensor(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()


def _decoded(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
