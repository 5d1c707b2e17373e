"""What a request may say about how its text is generated. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.values import Read, real, texts, truth, whole, wholes


@dataclass(frozen=True, slots=True)
class Sampling:
    """How text is generated. Names are those of vLLM where it has one.

    Without `temperature`, `top_k` and `top_p` the most probable token is taken, as with a temperature of 0 or `top_k` 1. `top_k` 0 and -1 are all
    tokens. `n` texts are made; with `beam_width` above 1 they are the best of a beam search. `logprobs` above 1 tells that many of the most probable
    tokens of each step. `stream_interval` is how many tokens an answer of a stream carries.
    """

    max_tokens: int = 16
    min_tokens: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    bad_words: tuple[str, ...] = ()
    skip_special_tokens: bool = True
    n: int = 1
    beam_width: int = 1
    length_penalty: float = 1.0
    logprobs: int = 0
    stream_interval: int = 1
    limited_by_context: bool = False
    """`max_tokens` is what the model has room for, fewer than the request asked for; no request sets it."""

    @property
    def draws(self) -> bool:
        """True where tokens are drawn by lot."""
        asked = not (self.temperature is None and self.top_k is None and self.top_p is None)
        return asked and self.temperature != 0 and self.top_k != 1 and self.beam_width == 1

    @property
    def remembers(self) -> bool:
        """True where the choice of a token depends on which tokens were generated before, beside the text that they are."""
        return self.repetition_penalty != 1 or bool(self.no_repeat_ngram_size or self.min_tokens or self.bad_words)


_READ: Mapping[str, Read] = {
    "max_tokens": whole(1),
    "min_tokens": whole(0),
    "temperature": real(0),
    "top_k": whole(-1),
    "top_p": real(0, 1, open_below=True),
    "repetition_penalty": real(0, open_below=True),
    "no_repeat_ngram_size": whole(0),
    "seed": whole(0, 2**64 - 1),
    "stop": texts,
    "stop_token_ids": wholes,
    "include_stop_str_in_output": truth,
    "ignore_eos": truth,
    "bad_words": texts,
    "skip_special_tokens": truth,
    "n": whole(1, 128),
    "beam_width": whole(1, 128),
    "length_penalty": real(0),
    "logprobs": whole(0),
    "stream_interval": whole(1),
}
# The names of TensorRT-LLM, TGI, Hugging Face and CTranslate2 for the same.
_OTHER_NAMES = {
    "max_new_tokens": "max_tokens",
    "min_length": "min_tokens",
    "min_new_tokens": "min_tokens",
    "random_seed": "seed",
    "stop_words": "stop",
    "end_id": "stop_token_ids",
    "beam_size": "beam_width",
    "num_beams": "beam_width",
    "num_return_sequences": "n",
    "sampling_topk": "top_k",
    "sampling_topp": "top_p",
    "sampling_temperature": "temperature",
}
# What the library cannot do is refused, unless it says that nothing of it is wanted.
_NOTHING = {"presence_penalty": 0, "frequency_penalty": 0, "min_p": 0, "best_of": 1, "use_beam_search": False}
KNOWN = frozenset((*_READ, *_OTHER_NAMES, *_NOTHING))


def with_values(sampling: Sampling, values: Mapping[str, Any]) -> Sampling:
    """Return `sampling` with `values` instead of its own; None leaves one as it is. Raises InvalidArgument for an unknown name or a bad value."""
    changes: dict[str, Any] = {}
    for given, value in values.items():
        name = _OTHER_NAMES.get(given, given)
        if value is None:
            continue
        if name in _NOTHING:
            _check_nothing(name, value)
        elif name in _READ:
            changes[name] = _READ[name](given, value)
        else:
            raise InvalidArgument(f"there is no sampling parameter '{given}', there are: {', '.join(_READ)}")
    result = replace(sampling, **changes)
    _check(result)
    return result


def with_json(sampling: Sampling, text: str, where: str) -> Sampling:
    """Return `sampling` with the values of a JSON object; raises InvalidArgument where `text` is none."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"'{where}' is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise InvalidArgument(f"'{where}' must be a JSON object")
    return with_values(sampling, values)


def known(names: Iterable[str]) -> list[str]:
    """Return those of `names` that are sampling parameters."""
    return [name for name in names if name in KNOWN]


def _check_nothing(name: str, value: Any) -> None:
    if str(value).lower() not in {str(_NOTHING[name]).lower(), f"{float(_NOTHING[name])}"}:
        raise InvalidArgument(f"'{name}' is something that CTranslate2 cannot do: leave it out")


def _check(sampling: Sampling) -> None:
    if sampling.min_tokens > sampling.max_tokens:
        raise InvalidArgument(f"'min_tokens' ({sampling.min_tokens}) is more than 'max_tokens' ({sampling.max_tokens})")
    if sampling.beam_width > 1:
        _check_beams(sampling)
    elif sampling.n > 1 and not sampling.draws:
        raise InvalidArgument(
            f"'n' of {sampling.n} needs tokens that are drawn ('temperature') or as wide a beam ('beam_width')"
        )


def _check_beams(sampling: Sampling) -> None:
    if sampling.n > sampling.beam_width:
        raise InvalidArgument(f"'n' ({sampling.n}) is more than 'beam_width' ({sampling.beam_width})")
    if sampling.temperature:
        raise InvalidArgument("a beam search draws nothing: leave out 'temperature' or 'beam_width'")
    if sampling.logprobs > 1:
        raise InvalidArgument(
            "a beam search tells the probability of a text, not those of other tokens: leave out 'logprobs'"
        )
