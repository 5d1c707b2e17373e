"""Token sampling from the scores of a step, repeatable by a seed. Pure.

CTranslate2 samples faster. But each of its threads has one random generator for all texts, which
cannot be seeded again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy_backend_transformer.sampling import Sampling

Scores = npt.NDArray[np.float32]


class TokenSampler:
    """The random choices of one text: equal seeds, parameters and scores choose equal tokens."""

    def __init__(
        self,
        sampling: Sampling,
        end_ids: Collection[int],
        index: int = 0,
        banned: Sequence[Sequence[int]] = (),
    ) -> None:
        """Seed the choices.

        `end_ids` are the tokens that end a text, and `banned` the sequences of tokens that are
        banned. `index` is the position of the text in its request.
        """
        self._sampling = sampling
        self._banned = banned
        self._end_ids = list(end_ids)
        self._random = np.random.default_rng(
            None if sampling.seed is None else [sampling.seed, index]
        )

    def draw(self, scores: Scores, earlier: Sequence[int]) -> int:
        """Return the next token by the raw scores of all tokens and `earlier` generated tokens."""
        probabilities = probabilities_of(self._admissible(scores, earlier), self._sampling)
        return int(
            np.searchsorted(
                np.cumsum(probabilities), self._random.random() * probabilities.sum(), side="right"
            )
        )

    def _admissible(self, scores: Scores, earlier: Sequence[int]) -> npt.NDArray[np.float64]:
        sampling = self._sampling
        result: npt.NDArray[np.float64] = scores.astype(np.float64)
        if sampling.repetition_penalty != 1 and earlier:
            seen = np.unique(np.array(earlier))
            penalty = sampling.repetition_penalty
            result[seen] = np.where(
                result[seen] < 0, result[seen] * penalty, result[seen] / penalty
            )
        excluded = repeats(earlier, sampling.no_repeat_ngram_size) + last_of(self._banned, earlier)
        if len(earlier) < sampling.min_tokens:
            excluded += self._end_ids
        result[excluded] = -np.inf
        return result


def probabilities_of(
    scores: npt.NDArray[np.float64], sampling: Sampling
) -> npt.NDArray[np.float64]:
    """Return the probability of each token after `temperature`, `top_k` and `top_p`."""
    scaled = scores / (1.0 if sampling.temperature is None else sampling.temperature)
    count = sampling.top_k or 0
    if 0 < count < len(scaled):
        least = np.partition(scaled, -count)[-count]
        scaled = np.where(scaled >= least, scaled, -np.inf)
    probabilities: npt.NDArray[np.float64] = np.exp(scaled - scaled.max())
    probabilities /= probabilities.sum()
    if sampling.top_p is not None and sampling.top_p < 1:
        order = np.argsort(-probabilities, kind="stable")
        before = np.cumsum(probabilities[order]) - probabilities[order]
        probabilities[order[before >= sampling.top_p]] = 0
    return probabilities


def repeats(earlier: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would repeat an n-gram of `size` tokens (0: none)."""
    if size < 1 or len(earlier) < size:
        return []
    tail = list(earlier[len(earlier) - size + 1 :])
    return [
        earlier[start + size - 1]
        for start in range(len(earlier) - size + 1)
        if list(earlier[start : start + size - 1]) == tail
    ]


def last_of(runs: Sequence[Sequence[int]], earlier: Sequence[int]) -> list[int]:
    """Return the tokens that would complete one of `runs`."""
    return [
        run[-1] for run in runs if list(earlier[len(earlier) - len(run) + 1 :]) == list(run[:-1])
    ]


def most_probable(scores: Scores, count: int) -> list[tuple[int, float]]:
    """Return the `count` most probable tokens with their log probabilities, best first."""
    logs = log_probabilities(scores)
    best = np.argsort(-logs, kind="stable")[:count]
    return [(int(token_id), float(logs[token_id])) for token_id in best]


def log_probabilities(scores: Scores) -> npt.NDArray[np.float64]:
    """Return the log probability of each token."""
    shifted = scores.astype(np.float64) - float(scores.max())
    result: npt.NDArray[Any] = shifted - np.log(np.exp(shifted).sum())
    return result
