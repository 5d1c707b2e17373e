"""Which texts one call of the library can continue together, and when it is worth to begin a running call anew for more of them. Pure.

The library generates for a fixed set of texts, all with the same options. A text leaves whenever it ends; for one to join, the call must end and begin again
with what was generated so far as part of the prompts, which costs to read those again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Shared:
    """The options of one call of the library: texts with equal ones can be in it together.

    `length` is that of their prompts where it must be the same, 0 where it need not; `alone` a text's own number where it must be by itself, 0 otherwise;
    `search` all that a request said, where it asked for a beam search.
    """

    draws: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    min_tokens: int
    bad: tuple[tuple[int, ...], ...]
    ignore_eos: bool
    log_probs: bool
    length: int
    alone: int
    search: Sampling | None


def shared_options(text: Continuation) -> Shared:
    """Return what a call for `text` needs."""
    sampling = text.sampling
    draws = sampling.draws and not text.has_lot
    remembers = sampling.remembers and not text.has_lot
    return Shared(
        draws=draws,
        temperature=1.0 if not draws or sampling.temperature is None else sampling.temperature,
        top_k=max(sampling.top_k or 0, 0) if draws else 1,
        top_p=1.0 if not draws or sampling.top_p is None else sampling.top_p,
        repetition_penalty=sampling.repetition_penalty if remembers else 1.0,
        no_repeat_ngram_size=sampling.no_repeat_ngram_size if remembers else 0,
        min_tokens=sampling.min_tokens if remembers else 0,
        bad=text.bad if remembers else (),
        ignore_eos=sampling.ignore_eos,
        log_probs=sampling.logprobs > 0,
        # Penalties count what was generated beyond the shortest prompt of the call, and a prompt of one token is read in another way.
        length=text.length if remembers or text.length == 1 or text.searched else 0,
        alone=id(text) if text.alone else 0,
        search=sampling if text.searched else None,
    )


def can_join(text: Continuation) -> bool:
    """Say whether the text so far is all that the next token depends on: then a call may begin anew with it as a prompt."""
    return not (text.sampling.remembers or text.alone or text.searched)


def fitting(first: Continuation, others: Sequence[Continuation], room: int) -> list[Continuation]:
    """Return up to `room` of `others` that a call with `first` can take in.

    Of texts of different length the library reads together only as many tokens as the shortest has, the others' remaining ones one by one, while those
    that are through with theirs go on. That is good as long as it is short beside what is to be generated.
    """
    if room <= 0:
        return []
    shared = shared_options(first)
    return [
        text
        for text in others
        if abs(text.length - first.length) <= max(first.left, text.left) // 2 and shared_options(text) == shared
    ][:room]


@dataclass(slots=True)
class Pace:
    """How fast calls of a model are, measured as they run: seconds to read a token of a prompt, and for a step."""

    token: float = 0.0
    step: float = 0.0

    def read(self, tokens: int, seconds: float) -> None:
        """Take note of a prompt that was read, with its first step."""
        self.token = _smoothed(self.token, max(seconds - self.step, 0.0) / tokens)

    def stepped(self, steps: int, seconds: float) -> None:
        """Take note of steps that were made."""
        self.step = _smoothed(self.step, seconds / steps)


def _smoothed(old: float, new: float) -> float:
    return new if old == 0 else 0.75 * old + 0.25 * new


def worth_joining(running: Sequence[Continuation], newcomers: int, pace: Pace, since: float) -> bool:
    """Say whether a call should begin anew so that `newcomers` join it.

    All who run wait while their texts are read again; the newcomers would wait until those have ended. The smaller loss is taken, and no call ends
    before it ran as long (`since`, in seconds) as it costs to begin anew: so at least half of the time goes to new tokens, whatever comes.
    """
    lengths = [text.length for text in running]
    source = sum(len(text.prompt.source) for text in running)
    # An encoder-decoder model reads its source at once, and what it generated step by step.
    read, stepped = (source, max(lengths)) if source else (sum(lengths), max(lengths) - min(lengths))
    cost = read * pace.token + stepped * pace.step
    saved = max(text.left for text in running) * pace.step
    return since >= cost and cost * len(running) < saved * newcomers
