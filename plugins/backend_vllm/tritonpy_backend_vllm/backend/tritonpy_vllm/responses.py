"""Responses with the tensors of Triton's vllm_backend, from the outputs of vLLM's engine."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from tritonpy_vllm.calls import EmbedCall, GenerateCall


def text_response(output: Any, call: GenerateCall) -> Any:
    """Return the response for an output: the new part of a stream, or the whole text."""
    prefix = (output.prompt or "") if call.prepends_prompt else ""
    completions = output.outputs
    texts = [(prefix + each.text).encode("utf-8") for each in completions]
    tensors = [pb_utils.Tensor("text_output", np.array(texts, np.object_))]
    returned = call.returned
    if "finish_reason" in returned:
        reasons = [str(each.finish_reason) for each in completions]
        tensors.append(pb_utils.Tensor("finish_reason", np.array(reasons, np.object_)))
    if "cumulative_logprob" in returned:
        sums = [each.cumulative_logprob or 0.0 for each in completions]
        tensors.append(pb_utils.Tensor("cumulative_logprob", np.array(sums, np.float32)))
    if "logprobs" in returned:
        entries = [_logprobs(each.logprobs).encode("utf-8") for each in completions]
        tensors.append(pb_utils.Tensor("logprobs", np.array(entries, np.object_)))
    if "num_input_tokens" in returned:
        tensors.append(_count("num_input_tokens", [len(output.prompt_token_ids or ())]))
    if "num_output_tokens" in returned:
        counts = [len(each.token_ids) for each in completions]
        tensors.append(_count("num_output_tokens", counts))
    if "num_cached_tokens" in returned:
        tensors.append(_count("num_cached_tokens", [output.num_cached_tokens or 0]))
    return pb_utils.InferenceResponse(tensors)


def embedding_response(output: Any, call: EmbedCall) -> Any:
    """Return the response for an embedding, which is JSON in `text_output`."""
    values = output.outputs.data.tolist()
    text = json.dumps(values).encode("utf-8")
    tensors = [pb_utils.Tensor("text_output", np.array([text], np.object_))]
    if "num_input_tokens" in call.returned:
        tensors.append(_count("num_input_tokens", [len(output.prompt_token_ids)]))
    if "num_output_tokens" in call.returned:
        tensors.append(_count("num_output_tokens", [0]))
    return pb_utils.InferenceResponse(tensors)


def error_response(message: str, code: Any = None) -> Any:
    """Return a response with an error."""
    error = pb_utils.TritonError(message) if code is None else pb_utils.TritonError(message, code)
    return pb_utils.InferenceResponse(error=error)


def _count(name: str, values: list[int]) -> Any:
    return pb_utils.Tensor(name, np.array(values, np.uint32))


def _logprobs(tokens: Any) -> str:
    """Return the log probabilities of the tokens as JSON; the chosen token is the first of each."""
    if tokens is None:
        return "null"
    return json.dumps(
        [
            {
                token: {
                    "logprob": each.logprob,
                    "rank": each.rank,
                    "decoded_token": each.decoded_token,
                }
                for token, each in alternatives.items()
            }
            for alternatives in tokens
        ]
    )
