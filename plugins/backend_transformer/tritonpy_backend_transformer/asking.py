"""What a request asks for: prompt, sampling parameters, and how it wants to be answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tritonpy import InferRequest, InvalidArgument, Tensor
from tritonpy_backend_transformer.continuation import Prompt
from tritonpy_backend_transformer.fields import RETURN_INPUTS, SAMPLING_INPUTS
from tritonpy_backend_transformer.folder import Kind, ModelFolder
from tritonpy_backend_transformer.sampling import KNOWN, Sampling, known, with_json, with_values
from tritonpy_backend_transformer.settings import Settings
from tritonpy_backend_transformer.tokenizer import Tokenizer
from tritonpy_backend_transformer.values import truth

PARAMETERS = frozenset((*KNOWN, *RETURN_INPUTS, "stream", "exclude_input_in_output", "sampling_parameters"))
"""The request parameters that are read."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: `outputs` by name, in the order in which they are answered; `before` is what the answer begins with."""

    prompt: Prompt
    sampling: Sampling
    stream: bool
    before: str
    outputs: Sequence[str]


class Reader:
    """Reads the requests of one model."""

    def __init__(self, folder: ModelFolder, settings: Settings, outputs: Sequence[str], decoupled: bool) -> None:
        """`outputs` are those of the configuration."""
        self._folder = folder
        self._settings = settings
        self._configured = outputs
        self._decoupled = decoupled
        self._longest = _smaller(settings.longest, folder.positions)

    def read(self, request: InferRequest) -> Asked:
        """Return what `request` asks for; raises InvalidArgument where that cannot be."""
        outputs = self._outputs(request)
        prompt = self._prompt(request)
        sampling = self._sampling(request)
        if "logprobs" in outputs or "cumulative_logprob" in outputs:
            sampling = replace(sampling, logprobs=max(sampling.logprobs, 1))
        stream = _flag(request, "stream")
        if stream and not self._decoupled:
            raise InvalidArgument("'stream' needs a model whose configuration says decoupled: true")
        return Asked(prompt, self._limited(prompt, sampling), stream, self._before(request, prompt, stream), outputs)

    def _outputs(self, request: InferRequest) -> list[str]:
        if request.outputs is not None:
            return list(request.outputs)
        asked = {output for flag, output in RETURN_INPUTS.items() if _flag(request, flag)}
        told = {"text_output", "output_ids", *asked}
        return [name for name in self._configured if name in told]

    def _prompt(self, request: InferRequest) -> Prompt:
        text, numbers = _text(request, "text_input"), _numbers(request, "input_ids")
        if (text is None) == (numbers is None):
            raise InvalidArgument("a request needs one of the inputs 'text_input' and 'input_ids'")
        folder = self._folder
        tokens = folder.source.texts(numbers or [])
        if text is not None:
            tokens = self._tokenizer("text_input").encode(text, self._settings.special)
        if folder.kind is Kind.ENCODER_DECODER:
            return self._translation(request, tokens, text)
        start = folder.token("bos_token")
        if not tokens and start is not None and start in folder.target.numbers:
            tokens = [start]
        if not tokens:
            raise InvalidArgument("the prompt is empty, and the model has no token that begins a text")
        return Prompt(tokens, text=text)

    def _translation(self, request: InferRequest, source: list[str], text: str | None) -> Prompt:
        prefix, numbers = _text(request, "prefix"), _numbers(request, "prefix_ids")
        tokens = self._folder.target.texts(numbers or [])
        if prefix is not None:
            tokens = self._tokenizer("prefix").encode(prefix, special=False)
        if not source:
            raise InvalidArgument("the text is empty")
        if not tokens and self._folder.token("decoder_start_token") is None:
            raise InvalidArgument(
                "the model begins with no token of its own: name one by the input 'prefix', such as that of a language"
            )
        most = self._folder.source_positions
        if most is not None and len(source) > most:
            raise InvalidArgument(f"the text has {len(source)} tokens, the model reads at most {most}")
        return Prompt(tokens, source, text)

    def _sampling(self, request: InferRequest) -> Sampling:
        parameters = request.parameters
        values = {name: parameters[name] for name in known(parameters)}
        sampling = with_values(self._settings.sampling, values)
        as_json = _text(request, "sampling_parameters") or parameters.get("sampling_parameters")
        if as_json is not None:
            sampling = with_json(sampling, str(as_json), "sampling_parameters")
        tensors = {name: _value(request.inputs[name]) for name in SAMPLING_INPUTS if name in request.inputs}
        return with_values(sampling, tensors)

    def _limited(self, prompt: Prompt, sampling: Sampling) -> Sampling:
        """A text ends where the model has no more positions."""
        self._check(sampling)
        if self._longest is None:
            return sampling
        room = self._longest - len(prompt.tokens)
        if room < 1 or room < sampling.min_tokens:
            raise InvalidArgument(
                f"the prompt has {len(prompt.tokens)} tokens, the model takes at most {self._longest} together with those that are generated"
            )
        if room >= sampling.max_tokens:
            return sampling
        return replace(sampling, max_tokens=room, limited_by_context=True)

    def _check(self, sampling: Sampling) -> None:
        size = len(self._folder.target)
        beyond = [number for number in sampling.stop_token_ids if number >= size]
        if beyond:
            raise InvalidArgument(f"'stop_token_ids' names token {beyond[0]}, the model has tokens 0 to {size - 1}")
        if sampling.stop or sampling.bad_words:
            self._tokenizer("stop_words" if sampling.stop else "bad_words")

    def _before(self, request: InferRequest, prompt: Prompt, stream: bool) -> str:
        """As in Triton's vLLM backend an answer that is no stream begins with the prompt, unless it is told not to."""
        excluded = _asked_flag(request, "exclude_input_in_output")
        if stream:
            if excluded is False:
                raise InvalidArgument("When streaming, `exclude_input_in_output` = False is not allowed.")
            return ""
        if excluded or self._folder.kind is Kind.ENCODER_DECODER:
            return ""
        return prompt.text or ""

    def _tokenizer(self, name: str) -> Tokenizer:
        if self._folder.tokenizer is None:
            raise InvalidArgument(
                f"'{name}' needs a tokenizer, and there is no 'tokenizer.json' in '{self._folder.path}'"
            )
        return self._folder.tokenizer


def _smaller(one: int | None, other: int | None) -> int | None:
    given = [each for each in (one, other) if each is not None]
    return min(given, default=None)


def _value(tensor: Tensor) -> Any:
    """Return the one element of a tensor, or its elements; None where it has none."""
    if tensor.datatype == "BYTES":
        elements: list[Any] = [_decoded(tensor.name, each) for each in tensor.strings()]
    else:
        elements = tensor.numpy().reshape(-1).tolist()
    return elements if len(elements) > 1 else next(iter(elements), None)


def _text(request: InferRequest, name: str) -> str | None:
    tensor = request.inputs.get(name)
    strings = [] if tensor is None else tensor.strings()
    return _decoded(name, strings[0]) if strings else None


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"input '{name}' is no text in UTF-8") from None


def _numbers(request: InferRequest, name: str) -> list[int] | None:
    tensor = request.inputs.get(name)
    numbers: list[int] | None = None if tensor is None else tensor.numpy().reshape(-1).tolist()
    return numbers


def _asked_flag(request: InferRequest, name: str) -> bool | None:
    tensor = request.inputs.get(name)
    value = request.parameters.get(name) if tensor is None else _value(tensor)
    return None if value is None else truth(name, value)


def _flag(request: InferRequest, name: str) -> bool:
    return _asked_flag(request, name) or False
