"""A text that is being generated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tritonpy import TritonError
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.stop_strings import StopStrings
from tritonpy_backend_transformer.token_sampler import (
    Scores,
    TokenSampler,
    log_probabilities,
    most_probable,
)
from tritonpy_backend_transformer.tokenizer import Detokenizer, Tokenizer


@dataclass(frozen=True, slots=True)
class Prompt:
    """The tokens that a text continues.

    `source` are the tokens that an encoder-decoder model reads. `text` is the prompt as text, or
    None if it arrived as token IDs.
    """

    tokens: Sequence[str]
    source: Sequence[str] = ()
    text: str | None = None

    @property
    def length(self) -> int:
        """The number of tokens in the request."""
        return len(self.source) or len(self.tokens)


@dataclass(slots=True)
class Choice:
    """A chosen token.

    `others` are the most probable tokens of its step, best first, if requested.
    """

    token_id: int
    log_prob: float | None
    others: Sequence[tuple[int, float]] = ()


@dataclass(slots=True)
class TextDelta:
    """The part of a text that is new since the last response.

    `finish` is why the text ended, or None.
    """

    text: str
    choices: list[Choice]
    finish: str | None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A result of a beam search.

    `log_prob` belongs to the whole text. `ended` is true if the text ended by itself.
    """

    token_ids: list[int]
    log_prob: float
    ended: bool


class TokenListener(Protocol):
    """The receiver of texts. The generating thread calls it."""

    def is_active(self) -> bool:
        """Return true while a client waits for the text."""

    def on_progress(self) -> None:
        """Handle new tokens, or the end, of one of its texts."""

    def on_search_results(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Handle the results of the beam search for its texts."""

    def on_error(self, error: TritonError) -> None:
        """Handle an error that ends all its texts."""


class Continuation:
    """Collects the tokens of a text until it ends.

    It ends by a token or string that ends it, at its limit, or because it is cancelled.
    """

    def __init__(
        self,
        listener: TokenListener,
        prompt: Prompt,
        sampling: Sampling,
        end_ids: Collection[int],
        tokenizer: Tokenizer | None,
        index: int = 0,
        banned: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        """Prepare an empty text.

        `end_ids` are the tokens that end a text, and `banned` the sequences of tokens that are
        banned. `index` is the position of the text in its request.
        """
        self.listener = listener
        self.prompt = prompt
        self.sampling = sampling
        self.banned = banned
        self.token_ids: list[int] = []
        self.log_prob = 0.0
        self.finish: str | None = None
        own_end_ids = () if sampling.ignore_eos else end_ids
        self.end_ids = frozenset((*own_end_ids, *sampling.stop_token_ids))
        self._stop = StopStrings(sampling.stop, sampling.include_stop_str_in_output)
        self._text = None if tokenizer is None else _detokenizer(tokenizer, prompt, sampling)
        self._delta = TextDelta("", [], None)
        # With one callback per step, CTranslate2 chooses the most probable token: sampling happens
        # here.
        self._sampler = (
            TokenSampler(sampling, self.end_ids, index, banned)
            if sampling.is_random and self._needs_scores()
            else None
        )

    @property
    def runs_alone(self) -> bool:
        """True if each step needs its scores: for sampling here, or to report other tokens."""
        return self._sampler is not None or self.sampling.logprobs > 1

    @property
    def has_sampler(self) -> bool:
        """True if the backend samples the tokens and applies all sampling parameters."""
        return self._sampler is not None

    def _needs_scores(self) -> bool:
        return self.sampling.seed is not None or self.sampling.logprobs > 1

    @property
    def _limit_reason(self) -> str:
        """The reason for the end of a text that has its maximum number of tokens."""
        return "context_length" if self.sampling.limited_by_context else "length"

    @property
    def remaining(self) -> int:
        """The number of tokens that may still be generated."""
        return self.sampling.max_tokens - len(self.token_ids)

    @property
    def length(self) -> int:
        """The number of tokens so far, including the prompt's."""
        return len(self.prompt.tokens) + len(self.token_ids)

    @property
    def uses_beam_search(self) -> bool:
        """True if the text comes from a beam search, which returns it as a whole."""
        return self.sampling.beam_width > 1

    def add_from_scores(self, token_id: int, scores: Scores, log_prob: float | None) -> bool:
        """Add a token by the scores of a step in which the library chose `token_id`.

        Return true if another token was chosen or the text ended.
        """
        drawn = token_id if self._sampler is None else self._sampler.draw(scores, self.token_ids)
        if drawn != token_id or log_prob is None:
            log_prob = float(log_probabilities(scores)[drawn])
        others = most_probable(scores, self.sampling.logprobs) if self.sampling.logprobs > 1 else ()
        self._add(Choice(drawn, log_prob, others))
        return drawn != token_id or self.finish is not None

    def add(self, token_id: int, log_prob: float | None) -> bool:
        """Add the next token. Return true if the text ended."""
        self._add(Choice(token_id, log_prob))
        return self.finish is not None

    def add_hypothesis(self, hypothesis: Hypothesis) -> None:
        """Add all tokens of a beam search's result."""
        for token_id in hypothesis.token_ids:
            if self.finish is None:
                self._add(Choice(token_id, None))
        self.log_prob = hypothesis.log_prob
        if self.finish is None:
            self._end("stop" if hypothesis.ended else self._limit_reason)

    def cancel(self) -> None:
        """End the text without waiting for more tokens."""
        self.finish = self.finish or "cancelled"

    def take_delta(self) -> TextDelta:
        """Return everything that is new since the last call."""
        delta, self._delta = self._delta, TextDelta("", [], None)
        delta.finish = self.finish
        return delta

    @property
    def unsent_count(self) -> int:
        """The number of tokens since the last call of `take_delta`."""
        return len(self._delta.choices)

    @property
    def has_delta(self) -> bool:
        """True if there is something to send since the last call of `take_delta`.

        That is text or, without a tokenizer, a token.
        """
        return bool(self._delta.text if self._text is not None else self._delta.choices)

    def _add(self, choice: Choice) -> None:
        if choice.token_id in self.end_ids and len(self.token_ids) >= self.sampling.min_tokens:
            self._end("stop")
            return
        self.token_ids.append(choice.token_id)
        self._delta.choices.append(choice)
        self.log_prob += choice.log_prob or 0.0
        if self._text is not None:
            self._delta.text += self._stop.feed(self._text.add(choice.token_id))
        if self._stop.matched is not None:
            self.finish = "stop"
        elif self.remaining == 0:
            self._end(self._limit_reason)

    def _end(self, reason: str) -> None:
        if self._text is not None:
            self._delta.text += self._stop.feed(self._text.flush()) + self._stop.flush()
        self.finish = "stop" if self._stop.matched is not None else reason


def _detokenizer(tokenizer: Tokenizer, prompt: Prompt, sampling: Sampling) -> Detokenizer:
    return Detokenizer(tokenizer, sampling.skip_special_tokens, tokenizer.token_ids(prompt.tokens))
