"""One text that is being generated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tritonpy import TritonError
from tritonpy_backend_transformer.lot import Lot, Scores, log_probabilities, most_probable
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.stopping import StopStrings
from tritonpy_backend_transformer.tokenizer import Detokenizer, Tokenizer


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a text continues: `tokens`, and for a model that turns one text into another the tokens of that (`source`).

    `text` is the prompt as it came, None where it came as tokens.
    """

    tokens: Sequence[str]
    source: Sequence[str] = ()
    text: str | None = None

    @property
    def length(self) -> int:
        """Tokens that came in."""
        return len(self.source) or len(self.tokens)


@dataclass(slots=True)
class Choice:
    """A token that was chosen; `others` are the most probable ones of its step, the best first, where somebody wants them."""

    number: int
    log_prob: float | None
    others: Sequence[tuple[int, float]] = ()


@dataclass(slots=True)
class News:
    """What has come since somebody last asked; `finish` is why the text ended, None while it goes on."""

    text: str
    choices: list[Choice]
    finish: str | None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One result of a beam search; `log_prob` is that of the whole text, `ended` says whether it ended by itself."""

    numbers: list[int]
    log_prob: float
    ended: bool


class Listener(Protocol):
    """Who wants a text; called from the thread that generates it."""

    def wanted(self) -> bool:
        """Say whether anybody still waits for it."""

    def heard(self) -> None:
        """Take note that there is news of one of its texts."""

    def found(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Take the results of the beam search that its first text stands for."""

    def failed(self, error: TritonError) -> None:
        """Take note that its texts will not come."""


class Continuation:
    """Takes tokens one by one until the text ends: by a token or string that ends it, at its limit, or because nobody wants it any more."""

    def __init__(
        self,
        listener: Listener,
        prompt: Prompt,
        sampling: Sampling,
        ends: Collection[int],
        tokenizer: Tokenizer | None,
        number: int = 0,
        bad: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        """`ends` are the tokens that end a text, `bad` runs of them that must not come, `number` tells the texts of one request apart."""
        self.listener = listener
        self.prompt = prompt
        self.sampling = sampling
        self.bad = bad
        self.numbers: list[int] = []
        self.log_prob = 0.0
        self.finish: str | None = None
        own_ends = () if sampling.ignore_eos else ends
        self.ends = frozenset((*own_ends, *sampling.stop_token_ids))
        self._stop = StopStrings(sampling.stop, sampling.include_stop_str_in_output)
        self._text = None if tokenizer is None else _detokenizer(tokenizer, prompt, sampling)
        self._news = News("", [], None)
        # Where a step is looked at, the library's own choice is the most probable token: whoever draws has to draw here.
        self._lot = Lot(sampling, self.ends, number, bad) if sampling.draws and self._is_looked_at() else None

    @property
    def alone(self) -> bool:
        """True where each step must be looked at: by a lot of its own, or to tell of other tokens."""
        return self._lot is not None or self.sampling.logprobs > 1

    @property
    def has_lot(self) -> bool:
        """True where its tokens are drawn by a lot of its own, which knows all that the sampling parameters ask for."""
        return self._lot is not None

    def _is_looked_at(self) -> bool:
        return self.sampling.seed is not None or self.sampling.logprobs > 1

    @property
    def _full(self) -> str:
        """Why a text ends that has as many tokens as it may have."""
        return "context_length" if self.sampling.limited_by_context else "length"

    @property
    def left(self) -> int:
        """How many tokens may still come."""
        return self.sampling.max_tokens - len(self.numbers)

    @property
    def length(self) -> int:
        """Tokens of the text so far, with those of its prompt."""
        return len(self.prompt.tokens) + len(self.numbers)

    @property
    def searched(self) -> bool:
        """True where the text is the result of a beam search, which gives it as a whole."""
        return self.sampling.beam_width > 1

    def look(self, number: int, scores: Scores, log_prob: float | None) -> bool:
        """Take the next token from the scores of a step in which the library chose `number`; return True where that was another one, or the text ended."""
        drawn = number if self._lot is None else self._lot.draw(scores, self.numbers)
        if drawn != number or log_prob is None:
            log_prob = float(log_probabilities(scores)[drawn])
        others = most_probable(scores, self.sampling.logprobs) if self.sampling.logprobs > 1 else ()
        self._add(Choice(drawn, log_prob, others))
        return drawn != number or self.finish is not None

    def add(self, number: int, log_prob: float | None) -> bool:
        """Take the next token; return True where the text ended."""
        self._add(Choice(number, log_prob))
        return self.finish is not None

    def take(self, hypothesis: Hypothesis) -> None:
        """Take all tokens at once."""
        for number in hypothesis.numbers:
            if self.finish is None:
                self._add(Choice(number, None))
        self.log_prob = hypothesis.log_prob
        if self.finish is None:
            self._end("stop" if hypothesis.ended else self._full)

    def cancel(self) -> None:
        """End the text: nobody wants it."""
        self.finish = self.finish or "cancelled"

    def news(self) -> News:
        """Return what has come since the last call."""
        news, self._news = self._news, News("", [], None)
        news.finish = self.finish
        return news

    @property
    def unread(self) -> int:
        """How many tokens have come since the last call of `news`."""
        return len(self._news.choices)

    @property
    def has_news(self) -> bool:
        """True where there is something to tell since the last call of `news`: text, or where nothing makes text of tokens a token."""
        return bool(self._news.text if self._text is not None else self._news.choices)

    def _add(self, choice: Choice) -> None:
        if choice.number in self.ends and len(self.numbers) >= self.sampling.min_tokens:
            self._end("stop")
            return
        self.numbers.append(choice.number)
        self._news.choices.append(choice)
        self.log_prob += choice.log_prob or 0.0
        if self._text is not None:
            self._news.text += self._stop.feed(self._text.add(choice.number))
        if self._stop.matched is not None:
            self.finish = "stop"
        elif self.left == 0:
            self._end(self._full)

    def _end(self, reason: str) -> None:
        if self._text is not None:
            self._news.text += self._stop.feed(self._text.flush()) + self._stop.flush()
        self.finish = "stop" if self._stop.matched is not None else reason


def _detokenizer(tokenizer: Tokenizer, prompt: Prompt, sampling: Sampling) -> Detokenizer:
    return Detokenizer(tokenizer, sampling.skip_special_tokens, tokenizer.numbers(prompt.tokens))
