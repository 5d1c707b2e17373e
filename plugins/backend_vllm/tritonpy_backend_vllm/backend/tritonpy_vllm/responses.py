"""Responses from the outputs of vLLM's engine."""

from __future__ import annotations

from typing import Any

from tritonpy_text_backend.contract import TextPart, text_response
from tritonpy_vllm.calls import GenerateCall


def output_response(output: Any, call: GenerateCall) -> Any:
    """Return the response for an output: the new part of a stream, or the whole text."""
    prefix = (output.prompt or "") if call.prepends_prompt else ""
    parts = [
        TextPart(
            prefix + each.text,
            str(each.finish_reason),
            output_tokens=len(each.token_ids),
            input_tokens=len(output.prompt_token_ids or ()),
            cached_tokens=output.num_cached_tokens or 0,
            cumulative_logprob=each.cumulative_logprob or 0.0,
            logprobs=_logprobs(each.logprobs) if "logprobs" in call.returned else None,
        )
        for each in output.outputs
    ]
    return text_response(parts, call.returned)


def _logprobs(tokens: Any) -> list[dict[Any, Any]] | None:
    if tokens is None:
        return None
    return [
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
