"""Reader of generation requests: prompt, sampling parameters and response options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tritonpy import InferRequest, InvalidArgument, Tensor
from tritonpy_backend_transformer.continuation import Prompt
from tritonpy_backend_transformer.fields import RETURN_INPUTS, SAMPLING_INPUTS
from tritonpy_backend_transformer.model_folder import FolderKind, ModelFolder
from tritonpy_backend_transformer.sampling import (
    PARAMETER_NAMES,
    Sampling,
    select_known,
    update_from_json,
    update_sampling,
)
from tritonpy_backend_transformer.settings import Settings
from tritonpy_backend_transformer.tokenizer import Tokenizer
from tritonpy_backend_transformer.values import boolean

PARAMETERS = frozenset(
    (*PARAMETER_NAMES, *RETURN_INPUTS, "stream", "exclude_input_in_output", "sampling_parameters")
)
"""The names of all supported request parameters."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request for generated text.

    `echoed_prompt` is the beginning of the response; `outputs` are the names of its outputs, in
    order.
    """

    prompt: Prompt
    sampling: Sampling
    stream: bool
    echoed_prompt: str
    outputs: Sequence[str]


class RequestReader:
    """Reads the requests of one model."""

    def __init__(
        self, folder: ModelFolder, settings: Settings, outputs: Sequence[str], decoupled: bool
    ) -> None:
        """`outputs` are the names of the outputs in the configuration."""
        self._folder = folder
        self._settings = settings
        self._configured = outputs
        self._decoupled = decoupled
        self._max_length = _smaller_limit(settings.max_length, folder.positions)

    def read(self, request: InferRequest) -> GenerationRequest:
        """Return the parsed `request`. Raises `InvalidArgument` if it is invalid."""
        outputs = self._outputs(request)
        prompt = self._prompt(request)
        sampling = self._sampling(request)
        if "logprobs" in outputs or "cumulative_logprob" in outputs:
            sampling = replace(sampling, logprobs=max(sampling.logprobs, 1))
        stream = _flag(request, "stream")
        if stream and not self._decoupled:
            raise InvalidArgument("'stream' needs a model whose configuration says decoupled: true")
        return GenerationRequest(
            prompt,
            self._limited(prompt, sampling),
            stream,
            self._echoed_prompt(request, prompt, stream),
            outputs,
        )

    def _outputs(self, request: InferRequest) -> list[str]:
        if request.outputs is not None:
            return list(request.outputs)
        requested = {output for flag, output in RETURN_INPUTS.items() if _flag(request, flag)}
        names = {"text_output", "output_ids", *requested}
        return [name for name in self._configured if name in names]

    def _prompt(self, request: InferRequest) -> Prompt:
        text, token_ids = _text(request, "text_input"), _token_ids(request, "input_ids")
        if (text is None) == (token_ids is None):
            raise InvalidArgument("a request needs one of the inputs 'text_input' and 'input_ids'")
        folder = self._folder
        tokens = folder.source.texts(token_ids or [])
        if text is not None:
            tokens = self._tokenizer("text_input").encode(text, self._settings.add_special_tokens)
        if folder.kind is FolderKind.ENCODER_DECODER:
            return self._translation(request, tokens, text)
        start = folder.token("bos_token")
        if not tokens and start is not None and start in folder.target.token_ids:
            tokens = [start]
        if not tokens:
            raise InvalidArgument(
                "the prompt is empty, and the model has no token that begins a text"
            )
        return Prompt(tokens, text=text)

    def _translation(self, request: InferRequest, source: list[str], text: str | None) -> Prompt:
        prefix, token_ids = _text(request, "prefix"), _token_ids(request, "prefix_ids")
        tokens = self._folder.target.texts(token_ids or [])
        if prefix is not None:
            tokens = self._tokenizer("prefix").encode(prefix, add_special_tokens=False)
        if not source:
            raise InvalidArgument("the text is empty")
        if not tokens and self._folder.token("decoder_start_token") is None:
            raise InvalidArgument(
                "the model has no start token: name one with the input 'prefix', "
                "such as a language token"
            )
        limit = self._folder.source_positions
        if limit is not None and len(source) > limit:
            raise InvalidArgument(
                f"the text has {len(source)} tokens, the model reads at most {limit}"
            )
        return Prompt(tokens, source, text)

    def _sampling(self, request: InferRequest) -> Sampling:
        parameters = request.parameters
        values = {name: parameters[name] for name in select_known(parameters)}
        sampling = update_sampling(self._settings.sampling, values)
        as_json = _text(request, "sampling_parameters") or parameters.get("sampling_parameters")
        if as_json is not None:
            sampling = update_from_json(sampling, str(as_json), "sampling_parameters")
        tensors = {
            name: _value(request.inputs[name]) for name in SAMPLING_INPUTS if name in request.inputs
        }
        return update_sampling(sampling, tensors)

    def _limited(self, prompt: Prompt, sampling: Sampling) -> Sampling:
        """Limit `max_tokens` to the positions that the model has left."""
        self._check(sampling)
        if self._max_length is None:
            return sampling
        available = self._max_length - len(prompt.tokens)
        if available < 1 or available < sampling.min_tokens:
            raise InvalidArgument(
                f"the prompt has {len(prompt.tokens)} tokens, the model supports at most "
                f"{self._max_length} prompt and generated tokens"
            )
        if available >= sampling.max_tokens:
            return sampling
        return replace(sampling, max_tokens=available, limited_by_context=True)

    def _check(self, sampling: Sampling) -> None:
        size = len(self._folder.target)
        unknown = [token_id for token_id in sampling.stop_token_ids if token_id >= size]
        if unknown:
            raise InvalidArgument(
                f"'stop_token_ids' names token {unknown[0]}, the model has tokens 0 to {size - 1}"
            )
        if sampling.stop or sampling.bad_words:
            self._tokenizer("stop_words" if sampling.stop else "bad_words")

    def _echoed_prompt(self, request: InferRequest, prompt: Prompt, stream: bool) -> str:
        """Return the prompt if the response begins with it.

        As in Triton's vLLM backend, responses begin with the prompt unless they are streamed or the
        client excludes it.
        """
        excluded = _optional_flag(request, "exclude_input_in_output")
        if stream:
            if excluded is False:
                raise InvalidArgument(
                    "When streaming, `exclude_input_in_output` = False is not allowed."
                )
            return ""
        if excluded or self._folder.kind is FolderKind.ENCODER_DECODER:
            return ""
        return prompt.text or ""

    def _tokenizer(self, name: str) -> Tokenizer:
        if self._folder.tokenizer is None:
            raise InvalidArgument(
                f"'{name}' needs a tokenizer, but '{self._folder.path}' contains no "
                "'tokenizer.json'"
            )
        return self._folder.tokenizer


def _smaller_limit(one: int | None, other: int | None) -> int | None:
    given = [each for each in (one, other) if each is not None]
    return min(given, default=None)


def _value(tensor: Tensor) -> Any:
    """Return the only element of a tensor, or a list if it has several; None if it is empty."""
    if tensor.datatype == "BYTES":
        elements: list[Any] = [_decode(tensor.name, each) for each in tensor.strings()]
    else:
        elements = tensor.numpy().reshape(-1).tolist()
    return elements if len(elements) > 1 else next(iter(elements), None)


def _text(request: InferRequest, name: str) -> str | None:
    tensor = request.inputs.get(name)
    strings = [] if tensor is None else tensor.strings()
    return _decode(name, strings[0]) if strings else None


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"input '{name}' is not valid UTF-8") from None


def _token_ids(request: InferRequest, name: str) -> list[int] | None:
    tensor = request.inputs.get(name)
    token_ids: list[int] | None = None if tensor is None else tensor.numpy().reshape(-1).tolist()
    return token_ids


def _optional_flag(request: InferRequest, name: str) -> bool | None:
    tensor = request.inputs.get(name)
    value = request.parameters.get(name) if tensor is None else _value(tensor)
    return None if value is None else boolean(name, value)


def _flag(request: InferRequest, name: str) -> bool:
    return _optional_flag(request, name) or False
