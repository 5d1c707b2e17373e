"""Requests as llama.cpp takes them, and its answers as parts of texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonpy_text_backend.contract import TextPart, TextRequest

_REAL, _WHOLE, _FLAG = float, int, bool
# Names in OpenAI's API and in vLLM, with llama.cpp's name and type.
_PARAMETERS: Mapping[str, tuple[str, type]] = {
    "max_tokens": ("n_predict", _WHOLE),
    "temperature": ("temperature", _REAL),
    "top_p": ("top_p", _REAL),
    "top_k": ("top_k", _WHOLE),
    "min_p": ("min_p", _REAL),
    "seed": ("seed", _WHOLE),
    "presence_penalty": ("presence_penalty", _REAL),
    "frequency_penalty": ("frequency_penalty", _REAL),
    "repetition_penalty": ("repeat_penalty", _REAL),
    "ignore_eos": ("ignore_eos", _FLAG),
    "logprobs": ("n_probs", _WHOLE),
    # The following are llama.cpp's own.
    "typical_p": ("typical_p", _REAL),
    "top_n_sigma": ("top_n_sigma", _REAL),
    "repeat_last_n": ("repeat_last_n", _WHOLE),
    "xtc_probability": ("xtc_probability", _REAL),
    "xtc_threshold": ("xtc_threshold", _REAL),
    "dry_multiplier": ("dry_multiplier", _REAL),
    "dry_base": ("dry_base", _REAL),
    "dry_allowed_length": ("dry_allowed_length", _WHOLE),
    "mirostat": ("mirostat", _WHOLE),
    "mirostat_tau": ("mirostat_tau", _REAL),
    "mirostat_eta": ("mirostat_eta", _REAL),
}
# Parameters that may have the value that means "do nothing" only.
_WITHOUT_EFFECT: Mapping[str, Sequence[Any]] = {
    "n": (1,),
    "min_tokens": (0,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
}
_SEED_LIMIT = 2**32 - 1  # llama.cpp's seeds have 32 bits, and this one means a random seed
# No free choice of white space: small models would write line breaks until their limit.
_COMPACT = {"whitespace_flexible": False}
_RULES_HEAD = "%llguidance {}\n"


class EngineError(Exception):
    """llama.cpp refused a request or failed. `is_client` if the request is at fault."""

    def __init__(self, message: str, *, is_client: bool) -> None:
        super().__init__(message)
        self.is_client = is_client


class GrammarCheck:
    """Checks that a text obeys its grammar.

    llama.cpp continues without the grammar if it cannot apply it to the model's tokens.
    """

    def __init__(self, grammar: str) -> None:
        from llguidance import LLMatcher, LLTokenizer

        self._matcher = LLMatcher(LLTokenizer("byte"), grammar)

    def feed(self, text: str) -> None:
        """Raise EngineError if the text so far, followed by `text`, breaks the grammar."""
        data = text.encode("utf-8")
        if self._matcher.try_consume_tokens(list(data)) < len(data):
            raise EngineError("the model cannot write what the grammar requires", is_client=False)


def completion_body(request: TextRequest, adapters: Sequence[str]) -> dict[str, Any]:
    """Return the body of a completion, always as a stream. Raises ValueError.

    `adapters` are the names of the LoRA adapters in the order of their numbers.
    """
    body: dict[str, Any] = {"prompt": request.prompt, "stream": True}
    sampling = dict(request.sampling)
    adapter = sampling.pop("lora_name", None)
    if adapter is not None and adapter not in adapters:
        known = f"we currently support {list(adapters)}" if adapters else "the model has none"
        raise ValueError(f"LoRA {adapter} is not supported, {known}")
    if adapters:
        body["lora"] = [
            {"id": number, "scale": float(name == adapter)} for number, name in enumerate(adapters)
        ]
    for name, value in sampling.items():
        if value is None:
            continue
        if name == "structured_outputs":
            body["grammar"] = _grammar(json.loads(value) if isinstance(value, str) else value)
        elif name == "logit_bias":
            body[name] = [[int(token), float(bias)] for token, bias in dict(value).items()]
        elif name == "stop":
            body[name] = _stops(value)
        elif name in _PARAMETERS:
            own, kind = _PARAMETERS[name]
            body[own] = _converted(name, value, kind)
        elif value not in _WITHOUT_EFFECT.get(name, ()):
            raise ValueError(f"llama.cpp does not support {name} = {json.dumps(value)}")
    if "seed" in body:
        body["seed"] %= _SEED_LIMIT
    if {"logprobs", "cumulative_logprob"} & request.returned:
        body["n_probs"] = max(1, body.get("n_probs", 0))
    return body


def _converted(name: str, value: Any, kind: type) -> Any:
    """Return `value` as `kind`. Texts are converted, as in vllm_backend."""
    if kind is _FLAG and isinstance(value, str):
        return value.lower() == "true"
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise ValueError(f"invalid value of {name}: {json.dumps(value)}") from None


def _stops(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(each, str) for each in stops):
        raise ValueError(f"stop must be a text or a list of texts, got {json.dumps(value)}")
    return stops


def _grammar(guide: Mapping[str, Any]) -> str:
    """Return the grammar for vLLM's `structured_outputs`. Raises ValueError for an invalid one.

    llama.cpp itself ignores a schema that it cannot use, so it is checked first.
    """
    given = {name: value for name, value in guide.items() if value not in (None, False)}
    if len(given) != 1:
        raise ValueError(f"structured_outputs needs exactly one member, got {sorted(given)}")
    [(kind, value)] = given.items()
    if kind == "json_object":
        grammar = _json_rules({"type": "object"})
    elif kind == "json":
        schema = json.loads(value) if isinstance(value, str) else value
        if not isinstance(schema, dict):
            raise ValueError("structured_outputs: json must be a JSON schema")
        grammar = _json_rules(schema)
    elif kind == "regex":
        grammar = f"{_RULES_HEAD}start: /{str(value).replace('/', chr(92) + '/')}/"
    elif kind == "choice":
        grammar = _RULES_HEAD + "start: " + " | ".join(json.dumps(str(each)) for each in value)
    elif kind == "grammar":
        grammar = str(value) if str(value).startswith("%llguidance") else _RULES_HEAD + str(value)
    else:
        raise ValueError(f"llama.cpp does not support structured_outputs with {kind}")
    from llguidance import LLMatcher

    fault = LLMatcher.validate_grammar(grammar)
    if fault:
        raise ValueError(f"invalid structured_outputs: {fault.splitlines()[0]}")
    return grammar


def _json_rules(schema: Mapping[str, Any]) -> str:
    return f"{_RULES_HEAD}start: %json {json.dumps({'x-guidance': _COMPACT, **schema})}"


@dataclass
class Usage:
    """What one completion used: tokens, and its times in seconds."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0


def read_chunk(chunk: Mapping[str, Any]) -> TextPart:
    """Return the part of the text in an answer of llama.cpp. Raises EngineError."""
    raise_for_error(chunk)
    [choice] = chunk["choices"]
    logprobs = [_ranked(each) for each in (choice.get("logprobs") or {}).get("content", ())]
    return TextPart(
        choice["text"],
        str(choice["finish_reason"]),
        cumulative_logprob=sum(next(iter(each.values()))["logprob"] for each in logprobs),
        logprobs=logprobs or None,
    )


def raise_for_error(answer: Mapping[str, Any]) -> None:
    """Raise EngineError if llama.cpp refused the request or failed."""
    error = answer.get("error")
    if error is not None:
        # A text that exceeds the batch is an error of the server to llama.cpp.
        is_client = error.get("code") in {400, 404, 501} or "too large" in error["message"]
        raise EngineError(error["message"], is_client=is_client)


def read_usage(chunk: Mapping[str, Any]) -> Usage | None:
    """Return what a completion used, None if it is not the last answer."""
    usage, timings = chunk.get("usage"), chunk.get("timings", {})
    if usage is None:
        return None
    return Usage(
        usage["prompt_tokens"],
        usage["completion_tokens"],
        usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        timings.get("prompt_ms", 0.0) / 1000,
        timings.get("predicted_ms", 0.0) / 1000,
    )


def _ranked(token: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the alternatives of a token by their IDs, the chosen one first."""
    best = {each["id"]: rank for rank, each in enumerate(token["top_logprobs"], start=1)}
    every = [token, *(each for each in token["top_logprobs"] if each["id"] != token["id"])]
    return {
        each["id"]: {
            "logprob": each["logprob"],
            "rank": best.get(each["id"], len(best) + 1),
            "decoded_token": each["token"],
        }
        for each in every
    }
