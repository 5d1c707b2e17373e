"""The calls of CTranslate2 that generate text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritonpy_backend_transformer.continuation import Continuation, Hypothesis
from tritonpy_backend_transformer.folder import ModelFolder
from tritonpy_backend_transformer.lot import Scores
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.sharing import Shared

# Called for each new token with the place of its text in the call, its number, the logarithm of its probability (or None) and the scores of all tokens
# (or None); True ends that text.
OnToken = Callable[[int, int, float | None, Scores | None], bool]
_MOST_CANDIDATES = 1024  # of which a GPU can draw by `top_p`


class Writer(ABC):
    """A model that generates text: the calls of the library for one."""

    def __init__(self, folder: ModelFolder, model: Any) -> None:
        self._folder = folder
        self._model = model
        self._tokens = folder.target.tokens
        self._vocabulary_size = len(folder.target)

    @abstractmethod
    def write(self, texts: Sequence[Continuation], shared: Shared, on_token: OnToken) -> None:
        """Continue `texts` with one token after the other until `on_token` or the model ends each; blocks meanwhile."""

    @abstractmethod
    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        """Return the results of a beam search for each text, the best first; all have the same sampling parameters."""

    def context(self, text: Continuation) -> list[str]:
        """Return the prompt with what was generated so far."""
        tokens = self._tokens
        return [*text.prompt.tokens, *[tokens[number] for number in text.numbers]]

    def _options(self, shared: Shared) -> dict[str, Any]:
        top_k = shared.top_k if shared.top_k < self._vocabulary_size else 0
        if shared.top_p < 1 and self._model.device == "cuda" and not 0 < top_k <= _MOST_CANDIDATES:
            top_k = min(_MOST_CANDIDATES, self._vocabulary_size)
        options: dict[str, Any] = {
            "beam_size": 1,
            "sampling_topk": top_k,
            "sampling_topp": shared.top_p,
            "sampling_temperature": shared.temperature,
            "repetition_penalty": shared.repetition_penalty,
            "no_repeat_ngram_size": shared.no_repeat_ngram_size,
            "return_scores": shared.log_probs,
            "return_logits_vocab": bool(shared.alone),
        }
        return options | self._limits(shared.ignore_eos, shared.bad)

    def _limits(self, ignore_eos: bool, bad: Sequence[Sequence[int]]) -> dict[str, Any]:
        options: dict[str, Any] = {"end_token": []} if ignore_eos else {}
        if bad:
            options["suppress_sequences"] = [[self._tokens[number] for number in run] for run in bad]
        return options

    def _search_options(self, first: Continuation) -> dict[str, Any]:
        sampling = first.sampling
        options: dict[str, Any] = {
            "beam_size": sampling.beam_width,
            "num_hypotheses": sampling.n,
            "length_penalty": sampling.length_penalty,
            "repetition_penalty": sampling.repetition_penalty,
            "no_repeat_ngram_size": sampling.no_repeat_ngram_size,
            "return_scores": True,
            "return_end_token": True,
        }
        return options | self._limits(sampling.ignore_eos, first.bad) | {"end_token": sorted(first.ends)}

    def _hypothesis(self, numbers: list[int], score: float, text: Continuation) -> Hypothesis:
        """The library divides the score of a text by its length to the power of the penalty; this undoes it."""
        log_prob = score * len(numbers) ** text.sampling.length_penalty
        ended = bool(numbers) and numbers[-1] in text.ends
        return Hypothesis(numbers[:-1] if ended else numbers, log_prob, ended)

    def _hear(self, on_token: OnToken, forced: Sequence[int]) -> Callable[[Any], bool]:
        """Return the library's callback: it leaves out the tokens of each text that were given (`forced` many)."""
        size = self._vocabulary_size

        def hear(step: Any) -> bool:
            place = step.batch_id
            if step.step < forced[place]:
                return False
            return on_token(place, step.token_id, step.log_prob, _scores(step.logits, size))

        return hear


class Decoder(Writer):
    """Continues its prompt."""

    def write(self, texts: Sequence[Continuation], shared: Shared, on_token: OnToken) -> None:
        self._model.generate_batch(
            [self.context(text) for text in texts],
            max_length=max(text.left for text in texts),
            min_length=shared.min_tokens,
            include_prompt_in_result=False,
            callback=self._hear(on_token, [0] * len(texts)),
            **self._options(shared),
        )

    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        sampling = texts[0].sampling
        results = self._model.generate_batch(
            [self.context(text) for text in texts],
            max_length=sampling.max_tokens,
            min_length=sampling.min_tokens,
            include_prompt_in_result=False,
            **self._search_options(texts[0]),
        )
        return [
            [
                self._hypothesis(numbers, score, text)
                for numbers, score in zip(result.sequences_ids, result.scores, strict=True)
            ]
            for text, result in zip(texts, results, strict=True)
        ]


class EncoderDecoder(Writer):
    """Turns one text into another; the tokens of its prompt are the beginning of the other."""

    def write(self, texts: Sequence[Continuation], shared: Shared, on_token: OnToken) -> None:
        forced = [self._forced(text) for text in texts]
        self._model.translate_batch(
            [list(text.prompt.source) for text in texts],
            target_prefix=[self.context(text) for text in texts],
            max_input_length=0,
            max_decoding_length=max(text.left + count for text, count in zip(texts, forced, strict=True)),
            min_decoding_length=shared.min_tokens + (forced[0] if shared.min_tokens else 0),
            callback=self._hear(on_token, forced),
            **self._options(shared),
        )

    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        sampling, forced = texts[0].sampling, self._forced(texts[0])
        results = self._model.translate_batch(
            [list(text.prompt.source) for text in texts],
            target_prefix=[self.context(text) for text in texts],
            max_input_length=0,
            max_decoding_length=sampling.max_tokens + forced,
            min_decoding_length=sampling.min_tokens + forced,
            **self._search_options(texts[0]),
        )
        return [
            [
                self._translated(tokens, score, text)
                for tokens, score in zip(result.hypotheses, result.scores, strict=True)
            ]
            for text, result in zip(texts, results, strict=True)
        ]

    def _translated(self, tokens: list[str], score: float, text: Continuation) -> Hypothesis:
        numbers = self._folder.target.numbers
        whole = self._hypothesis([numbers[token] for token in tokens], score, text)
        return Hypothesis(whole.numbers[len(text.prompt.tokens) :], whole.log_prob, whole.ended)

    def _forced(self, text: Continuation) -> int:
        """The token from which the model starts is no step; without one in the configuration it is the first that is given."""
        starts = self._folder.token("decoder_start_token") is not None
        return text.length if starts else max(text.length - 1, 0)


def _scores(logits: Any, size: int) -> Scores | None:
    if logits is None:
        return None
    ctranslate2 = runtime()
    on_cpu = logits if logits.device == "cpu" else logits.to_device(ctranslate2.Device.cpu)
    array: Scores = np.array(on_cpu.to(ctranslate2.DataType.float32)).reshape(-1)[:size]
    return array
