"""Sampling parameters of requests. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.values import (
    ValueParser,
    boolean,
    real_number,
    strings,
    whole_number,
    whole_numbers,
)


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters of a request, named as in vLLM where possible.

    Without `temperature`, `top_k` and `top_p`, or with a temperature of 0 or a `top_k` of 1, the
    most probable token is chosen. A `top_k` of 0 or -1 means all tokens. `n` is the number of
    texts; with a `beam_width` above 1 they are the best results of a beam search. `logprobs` above
    1 also reports that many of the most probable tokens of each step. `stream_interval` is the
    number of tokens per response of a stream.
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
    """`max_tokens` was reduced to the positions that the model has left. No request sets this."""

    @property
    def is_random(self) -> bool:
        """True if tokens are chosen at random."""
        has_parameters = not (
            self.temperature is None and self.top_k is None and self.top_p is None
        )
        return has_parameters and self.temperature != 0 and self.top_k != 1 and self.beam_width == 1

    @property
    def depends_on_history(self) -> bool:
        """True if the choice of a token depends on which of the earlier tokens were generated."""
        return self.repetition_penalty != 1 or bool(
            self.no_repeat_ngram_size or self.min_tokens or self.bad_words
        )


_PARSERS: Mapping[str, ValueParser] = {
    "max_tokens": whole_number(1),
    "min_tokens": whole_number(0),
    "temperature": real_number(0),
    "top_k": whole_number(-1),
    "top_p": real_number(0, 1, exclusive_minimum=True),
    "repetition_penalty": real_number(0, exclusive_minimum=True),
    "no_repeat_ngram_size": whole_number(0),
    "seed": whole_number(0, 2**64 - 1),
    "stop": strings,
    "stop_token_ids": whole_numbers,
    "include_stop_str_in_output": boolean,
    "ignore_eos": boolean,
    "bad_words": strings,
    "skip_special_tokens": boolean,
    "n": whole_number(1, 128),
    "beam_width": whole_number(1, 128),
    "length_penalty": real_number(0),
    "logprobs": whole_number(0),
    "stream_interval": whole_number(1),
}
# Names of TensorRT-LLM, TGI, Hugging Face and CTranslate2 for the same parameters.
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
# Parameters that CTranslate2 does not support. Their neutral values are accepted.
_UNSUPPORTED = {
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "min_p": 0,
    "best_of": 1,
    "use_beam_search": False,
}
PARAMETER_NAMES = frozenset((*_PARSERS, *_OTHER_NAMES, *_UNSUPPORTED))


def update_sampling(sampling: Sampling, values: Mapping[str, Any]) -> Sampling:
    """Return `sampling` changed by `values`; a value of None changes nothing.

    Raises `InvalidArgument` for an unknown name or an invalid value.
    """
    changes: dict[str, Any] = {}
    for given, value in values.items():
        name = _OTHER_NAMES.get(given, given)
        if value is None:
            continue
        if name in _UNSUPPORTED:
            _check_unsupported(name, value)
        elif name in _PARSERS:
            changes[name] = _PARSERS[name](given, value)
        else:
            raise InvalidArgument(
                f"unknown sampling parameter '{given}', known are: {', '.join(_PARSERS)}"
            )
    result = replace(sampling, **changes)
    _check(result)
    return result


def update_from_json(sampling: Sampling, text: str, where: str) -> Sampling:
    """Return `sampling` changed by a JSON object. Raises `InvalidArgument` if `text` is not one."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"'{where}' is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise InvalidArgument(f"'{where}' must be a JSON object")
    return update_sampling(sampling, values)


def select_known(names: Iterable[str]) -> list[str]:
    """Return those of `names` that are sampling parameters."""
    return [name for name in names if name in PARAMETER_NAMES]


def _check_unsupported(name: str, value: Any) -> None:
    if str(value).lower() not in {str(_UNSUPPORTED[name]).lower(), f"{float(_UNSUPPORTED[name])}"}:
        raise InvalidArgument(f"'{name}' is not supported by CTranslate2: leave it out")


def _check(sampling: Sampling) -> None:
    if sampling.min_tokens > sampling.max_tokens:
        raise InvalidArgument(
            f"'min_tokens' ({sampling.min_tokens}) is more than 'max_tokens' "
            f"({sampling.max_tokens})"
        )
    if sampling.beam_width > 1:
        _check_beams(sampling)
    elif sampling.n > 1 and not sampling.is_random:
        raise InvalidArgument(
            f"'n' of {sampling.n} needs sampling ('temperature') or an equally wide beam "
            "('beam_width')"
        )


def _check_beams(sampling: Sampling) -> None:
    if sampling.n > sampling.beam_width:
        raise InvalidArgument(
            f"'n' ({sampling.n}) is more than 'beam_width' ({sampling.beam_width})"
        )
    if sampling.temperature:
        raise InvalidArgument(
            "a beam search is not random: leave out 'temperature' or 'beam_width'"
        )
    if sampling.logprobs > 1:
        raise InvalidArgument(
            "a beam search returns the probability of a text, not those of other tokens: "
            "leave out 'logprobs'"
        )
