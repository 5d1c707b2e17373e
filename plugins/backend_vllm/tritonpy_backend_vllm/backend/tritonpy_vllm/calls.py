"""Requests as vLLM's engine takes them, read from the tensors and parameters of a request."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from tritonpy_text_backend.contract import input_array, read_text_request

_TYPES = {int: int, float: float, bool: bool, str: str, Optional[int]: int}  # noqa: UP045 - vLLM


class AdapterFault(Exception):
    """The request names a LoRA adapter that the model does not have."""


@dataclass
class GenerateCall:
    """A request for text as vLLM takes it. `adapter` is the name of a LoRA adapter."""

    prompt: Any
    sampling: Any
    stream: bool
    prepends_prompt: bool
    returned: frozenset[str]
    adapter: str | None = None


def read_generate(request: Any, adapters: Mapping[str, str] | None) -> GenerateCall:
    """Return the call. Raises AdapterFault, and ValueError for invalid values."""
    read = read_text_request(request)
    adapter = read.sampling.pop("lora_name", None)
    if adapter is not None:
        if adapters is None:
            raise AdapterFault("LoRA feature is not enabled.")
        if adapter not in adapters:
            raise AdapterFault(
                f"LoRA {adapter} is not supported, we currently support {list(adapters)}"
            )
    return GenerateCall(
        _prompt(request, read.prompt),
        sampling_parameters(read.sampling, stream=read.stream),
        read.stream,
        read.prepends_prompt,
        read.returned,
        adapter,
    )


def read_embedding(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the prompt and vLLM's PoolingParams of an embedding. Raises ValueError."""
    from vllm.inputs import TokensPrompt
    from vllm.pooling_params import PoolingParams

    prompt = values["input"]
    if isinstance(prompt, list):
        prompt = TokensPrompt(prompt_token_ids=prompt)
    dimensions = values.get("pooling_params", {}).get("dimensions")
    if isinstance(dimensions, list):
        dimensions = dimensions[0]
    return prompt, PoolingParams(dimensions=dimensions, task="embed")


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


def _prompt(request: Any, prompt: str | list[int]) -> Any:
    """Return the prompt as vLLM takes it, with the images of the request."""
    if not isinstance(prompt, str):
        return {"prompt_token_ids": prompt}
    images = input_array(request, "image")
    if images is None or not images.size:
        return prompt
    from PIL import Image

    decoded = [
        Image.open(io.BytesIO(base64.b64decode(each))).convert("RGB") for each in images.ravel()
    ]
    return {"prompt": prompt, "multi_modal_data": {"image": decoded}}
