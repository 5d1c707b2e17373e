"""Rules for texts that share a CTranslate2 call, and for restarting a call to add texts. Pure.

CTranslate2 generates for a fixed set of texts, all with the same options. A text can end at any
time. For a text to join, the call must end and restart with the generated tokens as part of the
prompts. Reading those again takes time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy_backend_transformer.continuation import Continuation
from tritonpy_backend_transformer.sampling import Sampling


@dataclass(frozen=True, slots=True)
class SharedCallOptions:
    """The options of one CTranslate2 call.

    Texts with equal options can share it. `length` is the length of the prompts if it must be the
    same, else 0. `runs_alone` identifies a text that must run by itself, else it is 0. `search`
    holds the parameters of a beam search, else None.
    """

    is_random: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    min_tokens: int
    banned: tuple[tuple[int, ...], ...]
    ignore_eos: bool
    log_probs: bool
    length: int
    runs_alone: int
    search: Sampling | None


def call_options(text: Continuation) -> SharedCallOptions:
    """Return the options of a call for `text`."""
    sampling = text.sampling
    is_random = sampling.is_random and not text.has_sampler
    depends_on_history = sampling.depends_on_history and not text.has_sampler
    return SharedCallOptions(
        is_random=is_random,
        temperature=1.0 if not is_random or sampling.temperature is None else sampling.temperature,
        top_k=max(sampling.top_k or 0, 0) if is_random else 1,
        top_p=1.0 if not is_random or sampling.top_p is None else sampling.top_p,
        repetition_penalty=sampling.repetition_penalty if depends_on_history else 1.0,
        no_repeat_ngram_size=sampling.no_repeat_ngram_size if depends_on_history else 0,
        min_tokens=sampling.min_tokens if depends_on_history else 0,
        banned=text.banned if depends_on_history else (),
        ignore_eos=sampling.ignore_eos,
        log_probs=sampling.logprobs > 0,
        # Penalties count from the shortest prompt of the call, and one-token prompts are read
        # differently.
        length=text.length
        if depends_on_history or text.length == 1 or text.uses_beam_search
        else 0,
        runs_alone=id(text) if text.runs_alone else 0,
        search=sampling if text.uses_beam_search else None,
    )


def can_join(text: Continuation) -> bool:
    """Return true if the next token only depends on the text, so its call can be restarted."""
    return not (text.sampling.depends_on_history or text.runs_alone or text.uses_beam_search)


def select_compatible(
    first: Continuation, others: Sequence[Continuation], room: int
) -> list[Continuation]:
    """Return up to `room` of `others` that can share a call with `first`.

    CTranslate2 reads prompts together up to the length of the shortest, and the rest token by token
    while shorter texts already generate. That is good if the rest is short compared with the tokens
    still to be generated.
    """
    if room <= 0:
        return []
    shared = call_options(first)
    return [
        text
        for text in others
        if abs(text.length - first.length) <= max(first.remaining, text.remaining) // 2
        and call_options(text) == shared
    ][:room]


@dataclass(slots=True)
class CallTimes:
    """Measured times of a model's calls: seconds per prompt token and per step."""

    token: float = 0.0
    step: float = 0.0

    def read(self, tokens: int, seconds: float) -> None:
        """Record the time to read a prompt, first step included."""
        self.token = _smoothed(self.token, max(seconds - self.step, 0.0) / tokens)

    def add_steps(self, steps: int, seconds: float) -> None:
        """Record the time of `steps` steps."""
        self.step = _smoothed(self.step, seconds / steps)


def _smoothed(old: float, new: float) -> float:
    return new if old == 0 else 0.75 * old + 0.25 * new


def should_join(
    running: Sequence[Continuation], candidates: int, call_times: CallTimes, since: float
) -> bool:
    """Return true if a call should be restarted so that `candidates` texts can join it.

    On a restart, all running texts wait while they are read again. Without one, the new texts wait
    until the running ones have ended. The smaller loss wins. A call runs at least as long (`since`,
    in seconds) as its restart costs, so at least half of the time produces new tokens.
    """
    lengths = [text.length for text in running]
    source = sum(len(text.prompt.source) for text in running)
    # Encoder-decoder models read their source at once, and their generated tokens step by step.
    read, add_steps = (
        (source, max(lengths)) if source else (sum(lengths), max(lengths) - min(lengths))
    )
    cost = read * call_times.token + add_steps * call_times.step
    saved = max(text.remaining for text in running) * call_times.step
    return since >= cost and cost * len(running) < saved * candidates
