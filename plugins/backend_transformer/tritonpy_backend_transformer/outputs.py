"""The backend's outputs, named as in Triton's vLLM backend. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Tensor
from tritonpy_backend_transformer.continuation import Choice, Continuation, TextDelta
from tritonpy_backend_transformer.tokenizer import Tokenizer

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of a response's text: its beginning, the tokenizer if any, and the tokens."""

    echoed_prompt: str
    tokenizer: Tokenizer | None
    tokens: Sequence[str]

    def decode_token(self, token_id: int) -> str:
        """Return the text of one token."""
        return (
            self.tokens[token_id]
            if self.tokenizer is None
            else self.tokenizer.decode([token_id], skip_special=False)
        )


@dataclass(frozen=True, slots=True)
class ResponseContent:
    """The new parts of the texts of a request, in the same order."""

    texts: Sequence[Continuation]
    deltas: Sequence[TextDelta]
    text_format: TextFormat


def tensors_of(names: Sequence[str], content: ResponseContent) -> list[Tensor]:
    """Return the outputs `names`. Each has one element per text; `output_ids` has one per token."""
    return [Tensor.from_numpy(name, OUTPUTS[name](content)) for name in names]


def _text(content: ResponseContent) -> Array:
    return _objects(
        [(content.text_format.echoed_prompt + delta.text).encode() for delta in content.deltas]
    )


def _token_ids(content: ResponseContent) -> Array:
    rows = [[choice.token_id for choice in delta.choices] for delta in content.deltas]
    if len(rows) == 1:
        return np.array(rows[0], np.int32)
    widest = max(len(row) for row in rows)
    return np.array([row + [-1] * (widest - len(row)) for row in rows], np.int32).reshape(-1)


def _finish(content: ResponseContent) -> Array:
    return _objects([str(delta.finish).encode() for delta in content.deltas])


def _cumulative(content: ResponseContent) -> Array:
    return np.array([text.log_prob for text in content.texts], np.float32)


def _log_probs(content: ResponseContent) -> Array:
    return _objects(
        [
            json.dumps([_step_as_json(choice, content) for choice in delta.choices]).encode()
            for delta in content.deltas
        ]
    )


def _step_as_json(choice: Choice, content: ResponseContent) -> dict[int, dict[str, Any]]:
    """Return the tokens of one step by ID: the chosen one, then the most probable ones."""
    ranks = {token_id: rank for rank, (token_id, _) in enumerate(choice.others, start=1)}
    steps = {choice.token_id: choice.log_prob, **dict(choice.others)}
    return {
        token_id: {
            "logprob": log_prob,
            "rank": ranks.get(token_id),
            "decoded_token": content.text_format.decode_token(token_id),
        }
        for token_id, log_prob in steps.items()
    }


def _input_count(content: ResponseContent) -> Array:
    return np.array([content.texts[0].prompt.length], np.uint32)


def _output_count(content: ResponseContent) -> Array:
    return np.array([len(delta.choices) for delta in content.deltas], np.uint32)


def _objects(values: Sequence[bytes]) -> Array:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


OUTPUTS: Mapping[str, Callable[[ResponseContent], Array]] = {
    "text_output": _text,
    "output_ids": _token_ids,
    "finish_reason": _finish,
    "cumulative_logprob": _cumulative,
    "logprobs": _log_probs,
    "num_input_tokens": _input_count,
    "num_output_tokens": _output_count,
}
