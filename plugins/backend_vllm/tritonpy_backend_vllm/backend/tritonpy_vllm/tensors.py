"""The inputs and outputs of a model, as Triton's vllm_backend names them."""

from __future__ import annotations

from typing import Any

_FLAGS = (
    "stream",
    "exclude_input_in_output",
    "return_finish_reason",
    "return_cumulative_logprob",
    "return_logprobs",
    "return_num_input_tokens",
    "return_num_output_tokens",
    "return_num_cached_tokens",
)


def _tensor(name: str, datatype: str, size: int, *, optional: bool = True) -> dict[str, Any]:
    return {"name": name, "data_type": datatype, "dims": [size], "optional": optional}


INPUTS = [
    # Optional, since a request has either a text, token IDs, or a request for an embedding.
    _tensor("text_input", "TYPE_STRING", 1),
    _tensor("input_ids", "TYPE_INT32", -1),
    _tensor("image", "TYPE_STRING", -1),
    _tensor("sampling_parameters", "TYPE_STRING", 1),
    *(_tensor(name, "TYPE_BOOL", 1) for name in _FLAGS),
    _tensor("embedding_request", "TYPE_STRING", 1),
]
OUTPUTS = [
    {"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "finish_reason", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "cumulative_logprob", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "logprobs", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "num_input_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
    {"name": "num_output_tokens", "data_type": "TYPE_UINT32", "dims": [-1]},
    {"name": "num_cached_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
]


def complete(config: Any) -> Any:
    """Add missing inputs and outputs to `config`, which becomes decoupled and does not batch.

    vLLM batches tokens itself.
    """
    given = config.as_dict()
    names = {each["name"] for each in (*given["input"], *given["output"])}
    for tensor in INPUTS:
        if tensor["name"] not in names:
            config.add_input(tensor)
    for tensor in OUTPUTS:
        if tensor["name"] not in names:
            config.add_output(tensor)
    config.set_model_transaction_policy({"decoupled": True})
    config.set_max_batch_size(0)
    return config
