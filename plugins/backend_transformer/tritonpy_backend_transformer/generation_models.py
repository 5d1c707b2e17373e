"""CTranslate2's calls that generate text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritonpy_backend_transformer.continuation import Continuation, Hypothesis
from tritonpy_backend_transformer.model_folder import ModelFolder
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.shared_calls import SharedCallOptions
from tritonpy_backend_transformer.token_sampler import Scores

# Called for each new token with the index of its text in the call, the token ID, its log
# probability (or None) and the scores of all tokens (or None). Returning true ends the text.
OnToken = Callable[[int, int, float | None, Scores | None], bool]
_MAX_CANDIDATES = 1024  # CTranslate2's limit for `top_p` on a GPU


class GenerationModel(ABC):
    """A CTranslate2 model that generates text."""

    def __init__(self, folder: ModelFolder, model: Any) -> None:
        self._folder = folder
        self._model = model
        self._tokens = folder.target.tokens
        self._vocabulary_size = len(folder.target)

    @abstractmethod
    def write(
        self, texts: Sequence[Continuation], shared: SharedCallOptions, on_token: OnToken
    ) -> None:
        """Generate tokens for `texts` until `on_token` or the model ends each. Blocks."""

    @abstractmethod
    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        """Return the results of a beam search for each text, best first.

        All have equal sampling parameters.
        """

    def context(self, text: Continuation) -> list[str]:
        """Return the prompt and the generated tokens."""
        tokens = self._tokens
        return [*text.prompt.tokens, *[tokens[token_id] for token_id in text.token_ids]]

    def _options(self, shared: SharedCallOptions) -> dict[str, Any]:
        top_k = shared.top_k if shared.top_k < self._vocabulary_size else 0
        if shared.top_p < 1 and self._model.device == "cuda" and not 0 < top_k <= _MAX_CANDIDATES:
            top_k = min(_MAX_CANDIDATES, self._vocabulary_size)
        options: dict[str, Any] = {
            "beam_size": 1,
            "sampling_topk": top_k,
            "sampling_topp": shared.top_p,
            "sampling_temperature": shared.temperature,
            "repetition_penalty": shared.repetition_penalty,
            "no_repeat_ngram_size": shared.no_repeat_ngram_size,
            "return_scores": shared.log_probs,
            "return_logits_vocab": bool(shared.runs_alone),
        }
        return options | self._limits(shared.ignore_eos, shared.banned)

    def _limits(self, ignore_eos: bool, banned: Sequence[Sequence[int]]) -> dict[str, Any]:
        options: dict[str, Any] = {"end_token": []} if ignore_eos else {}
        if banned:
            options["suppress_sequences"] = [
                [self._tokens[token_id] for token_id in run] for run in banned
            ]
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
        return (
            options
            | self._limits(sampling.ignore_eos, first.banned)
            | {"end_token": sorted(first.end_ids)}
        )

    def _hypothesis(self, token_ids: list[int], score: float, text: Continuation) -> Hypothesis:
        """Return a hypothesis. The library divided its log probability by length ** penalty."""
        log_prob = score * len(token_ids) ** text.sampling.length_penalty
        ended = bool(token_ids) and token_ids[-1] in text.end_ids
        return Hypothesis(token_ids[:-1] if ended else token_ids, log_prob, ended)

    def _step_callback(self, on_token: OnToken, forced: Sequence[int]) -> Callable[[Any], bool]:
        """Return CTranslate2's callback.

        It skips the first `forced` tokens of each text, which were given.
        """
        size = self._vocabulary_size

        def on_step(step: Any) -> bool:
            index = step.batch_id
            if step.step < forced[index]:
                return False
            return on_token(index, step.token_id, step.log_prob, _scores(step.logits, size))

        return on_step


class Decoder(GenerationModel):
    """A model that continues its prompt."""

    def write(
        self, texts: Sequence[Continuation], shared: SharedCallOptions, on_token: OnToken
    ) -> None:
        self._model.generate_batch(
            [self.context(text) for text in texts],
            max_length=max(text.remaining for text in texts),
            min_length=shared.min_tokens,
            include_prompt_in_result=False,
            callback=self._step_callback(on_token, [0] * len(texts)),
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
                self._hypothesis(token_ids, score, text)
                for token_ids, score in zip(result.sequences_ids, result.scores, strict=True)
            ]
            for text, result in zip(texts, results, strict=True)
        ]


class EncoderDecoder(GenerationModel):
    """A model that converts one text into another, which begins with the prompt's tokens."""

    def write(
        self, texts: Sequence[Continuation], shared: SharedCallOptions, on_token: OnToken
    ) -> None:
        forced = [self._forced(text) for text in texts]
        self._model.translate_batch(
            [list(text.prompt.source) for text in texts],
            target_prefix=[self.context(text) for text in texts],
            max_input_length=0,
            max_decoding_length=max(
                text.remaining + count for text, count in zip(texts, forced, strict=True)
            ),
            min_decoding_length=shared.min_tokens + (forced[0] if shared.min_tokens else 0),
            callback=self._step_callback(on_token, forced),
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
        token_ids = self._folder.target.token_ids
        hypothesis = self._hypothesis([token_ids[token] for token in tokens], score, text)
        return Hypothesis(
            hypothesis.token_ids[len(text.prompt.tokens) :], hypothesis.log_prob, hypothesis.ended
        )

    def _forced(self, text: Continuation) -> int:
        """Return the number of given tokens that are steps: a start token is not a step.

        Without a start token in the configuration, the first given token is the start token.
        """
        starts = self._folder.token("decoder_start_token") is not None
        return text.length if starts else max(text.length - 1, 0)


def _scores(logits: Any, size: int) -> Scores | None:
    if logits is None:
        return None
    ctranslate2 = runtime()
    on_cpu = logits if logits.device == "cpu" else logits.to_device(ctranslate2.Device.cpu)
    array: Scores = np.array(on_cpu.to(ctranslate2.DataType.float32)).reshape(-1)[:size]
    return array
