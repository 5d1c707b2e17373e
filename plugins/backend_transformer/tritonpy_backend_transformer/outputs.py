"""What an answer says of texts: the backend's outputs, under the names of Triton's vLLM backend. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Tensor
from tritonpy_backend_transformer.continuation import Choice, Continuation, News
from tritonpy_backend_transformer.tokenizer import Tokenizer

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """How texts are put into words: what the answer begins with, the tokenizer where there is one, and the texts of tokens."""

    before: str
    tokenizer: Tokenizer | None
    tokens: Sequence[str]

    def decoded(self, number: int) -> str:
        """Return one token as a reader would see it."""
        return self.tokens[number] if self.tokenizer is None else self.tokenizer.decode([number], skip_special=False)


@dataclass(frozen=True, slots=True)
class Telling:
    """News of the texts of a request, in the same order."""

    texts: Sequence[Continuation]
    news: Sequence[News]
    wording: Wording


def tensors_of(names: Sequence[str], telling: Telling) -> list[Tensor]:
    """Return the outputs `names`, each with an element per text, but `output_ids` with one per token."""
    return [Tensor.from_numpy(name, OUTPUTS[name](telling)) for name in names]


def _text(telling: Telling) -> Array:
    return _objects([(telling.wording.before + news.text).encode() for news in telling.news])


def _numbers(telling: Telling) -> Array:
    rows = [[choice.number for choice in news.choices] for news in telling.news]
    if len(rows) == 1:
        return np.array(rows[0], np.int32)
    widest = max(len(row) for row in rows)
    return np.array([row + [-1] * (widest - len(row)) for row in rows], np.int32).reshape(-1)


def _finish(telling: Telling) -> Array:
    return _objects([str(news.finish).encode() for news in telling.news])


def _cumulative(telling: Telling) -> Array:
    return np.array([text.log_prob for text in telling.texts], np.float32)


def _log_probs(telling: Telling) -> Array:
    return _objects(
        [json.dumps([_described(choice, telling) for choice in news.choices]).encode() for news in telling.news]
    )


def _described(choice: Choice, telling: Telling) -> dict[int, dict[str, Any]]:
    """Return the tokens of one step by their number: the chosen one, then the most probable ones."""
    ranks = {number: rank for rank, (number, _) in enumerate(choice.others, start=1)}
    steps = {choice.number: choice.log_prob, **dict(choice.others)}
    return {
        number: {"logprob": log_prob, "rank": ranks.get(number), "decoded_token": telling.wording.decoded(number)}
        for number, log_prob in steps.items()
    }


def _input_count(telling: Telling) -> Array:
    return np.array([telling.texts[0].prompt.length], np.uint32)


def _output_count(telling: Telling) -> Array:
    return np.array([len(news.choices) for news in telling.news], np.uint32)


def _objects(values: Sequence[bytes]) -> Array:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


OUTPUTS: Mapping[str, Callable[[Telling], Array]] = {
    "text_output": _text,
    "output_ids": _numbers,
    "finish_reason": _finish,
    "cumulative_logprob": _cumulative,
    "logprobs": _log_probs,
    "num_input_tokens": _input_count,
    "num_output_tokens": _output_count,
}
