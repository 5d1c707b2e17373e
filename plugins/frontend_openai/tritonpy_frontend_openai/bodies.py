"""The bodies of requests: their members, types and ranges.

Source: the API reference of OpenAI for chat completions and completions. The further members are
those of vLLM's server, which it passes to its sampler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from tritonpy_frontend_openai.errors import ApiError

Penalty = Annotated[float, Meta(ge=-2, le=2)]
Count = Annotated[int, Meta(ge=0)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

# Members that vLLM's server has in addition to OpenAI's, and that its sampler reads.
_SAMPLER_MEMBERS = frozenset(
    {
        "top_k",
        "min_p",
        "repetition_penalty",
        "length_penalty",
        "stop_token_ids",
        "include_stop_str_in_output",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "truncate_prompt_tokens",
        "bad_words",
        "allowed_token_ids",
        "prompt_logprobs",
        "no_repeat_ngram_size",
        "beam_width",
        "priority",
    }
)


class StreamOptions(Struct):
    """Options of a stream: with `include_usage` the last event has the token counts."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class ContentPart(Struct):
    """A part of a message's content; only text is supported."""

    type: str
    text: str | None = None


class CalledFunction(Struct, omit_defaults=True):
    """The function of a tool call: its name and its arguments as JSON text."""

    name: str
    arguments: str = ""


class ToolCall(Struct):
    """A tool call in a message of the assistant."""

    function: CalledFunction
    id: str = ""
    type: str = "function"


class ChatMessage(Struct):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    function_call: CalledFunction | None = None
    refusal: str | None = None
    reasoning_content: str | None = None


class FunctionDefinition(Struct, omit_defaults=True):
    """A function that the model may call; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Struct):
    """A tool that the model may call."""

    function: FunctionDefinition
    type: Literal["function"] = "function"


class FunctionName(Struct):
    """The name of a function."""

    name: str


class NamedToolChoice(Struct):
    """A tool choice that requires one function."""

    function: FunctionName
    type: Literal["function"] = "function"


class JsonSchemaFormat(Struct):
    """A JSON schema for the response."""

    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(Struct):
    """The required form of the response."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: JsonSchemaFormat | None = None


class ModelBody(Struct, kw_only=True):
    """The members that all bodies share."""

    model: str
    user: str | None = None
    sampler: dict[str, Any] = field(default_factory=dict, name="(sampler)")
    """The members for the sampler that only vLLM's server has."""


class EmbeddingBody(ModelBody, kw_only=True):
    """The body of `POST /v1/embeddings`."""

    input: str | list[str | int | list[int]]
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    encoding_format: Literal["float", "base64"] = "float"


class CommonBody(ModelBody, kw_only=True):
    """The members that chat completions and completions share."""

    frequency_penalty: Penalty | None = None
    ignore_eos: bool | None = None
    logit_bias: dict[str, float] | None = None
    max_tokens: Count | None = None
    min_tokens: Count | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    presence_penalty: Penalty | None = None
    seed: Seed | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None

    @property
    def include_usage(self) -> bool:
        """Whether the stream ends with the token counts."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class ChatBody(CommonBody, kw_only=True):
    """The body of `POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    max_completion_tokens: Count | None = None
    response_format: ResponseFormat | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    function_call: Literal["none", "auto"] | FunctionName | None = None
    functions: list[FunctionDefinition] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: str | None = None


class CompletionBody(CommonBody, kw_only=True):
    """The body of `POST /v1/completions`."""

    prompt: str | list[str | int | list[int]]
    best_of: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    suffix: str | None = None


# Members that Triton's frontend does not have. It refuses every unknown member.
_NOT_IN_TRITON = {
    "sampler",
    "parallel_tool_calls",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template_kwargs",
    "reasoning_effort",
}
_Body = TypeVar("_Body", bound=ModelBody)
_PLACE = re.compile(r" - at `\$(.*)`$")
_RANGE = re.compile(r"Expected `\w+` (<=|>=|<|>) (\S+)")
_COMPARISONS = {
    "<=": "less than or equal to",
    ">=": "greater than or equal to",
    "<": "less than",
    ">": "greater than",
}


def read_body(data: bytes, kind: type[_Body], *, triton: bool) -> _Body:
    """Return the decoded body.

    Raises ApiError if it is no JSON object or a member has the wrong type or range. With `triton`,
    unknown members are errors, as in Triton's frontend.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid("json_invalid", (), f"JSON decode error: {error}") from None
    except RecursionError:
        raise _invalid("json_invalid", (), "JSON decode error: nested too deeply") from None
    if not isinstance(document, dict):
        raise _invalid("model_attributes_type", (), "Input should be a JSON object")
    if triton:
        _refuse_unknown(document, kind)
    try:
        body = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise _type_error(str(error)) from None
    except RecursionError:
        raise _invalid("json_invalid", (), "JSON decode error: nested too deeply") from None
    body.sampler = {
        name: value
        for name, value in document.items()
        if name in _SAMPLER_MEMBERS and value is not None
    }
    return body


def _refuse_unknown(document: Mapping[str, Any], kind: type[ModelBody]) -> None:
    known = set(kind.__struct_fields__) - _NOT_IN_TRITON
    unknown = [name for name in document if name not in known]
    if unknown:
        details = [
            {"type": "extra_forbidden", "loc": ["body", name],
             "msg": "Extra inputs are not permitted"}
            for name in unknown
        ]  # fmt: skip
        raise ApiError(f"unknown member '{unknown[0]}'", param=unknown[0], details=details)


def _type_error(text: str) -> ApiError:
    place = _PLACE.search(text)
    message = _PLACE.sub("", text)
    path = place[1].lstrip(".") if place is not None else ""
    if message.startswith("Object missing required field"):
        path = ".".join(filter(None, [path, message.split("`")[1]]))
        return _invalid("missing", path.split("."), "Field required", path)
    if compared := _RANGE.search(message):
        message = f"Input should be {_COMPARISONS[compared[1]]} {compared[2].removesuffix('.0')}"
    return _invalid("value_error", path.split("."), message, path)


def _invalid(kind: str, path: Any, message: str, param: str = "") -> ApiError:
    details = [{"type": kind, "loc": ["body", *path], "msg": message}]
    text = f"Invalid '{param}': {message}" if param else f"Invalid request body: {message}"
    return ApiError(text, param=param or None, code="invalid_value", details=details)
