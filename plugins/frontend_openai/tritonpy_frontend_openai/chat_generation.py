"""A chat with a model: the prompt, the sampling parameters, and the parts of what it writes.

The APIs that chat (chat completions, messages, responses) share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import ChatBody, ChatMessage, NamedToolChoice, Tool
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import TokenCounts
from tritonpy_frontend_openai.errors import ApiError, unsupported
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.output import (
    CallStart,
    FunctionOutput,
    OutputEvent,
    OutputParser,
    PlainOutput,
    ReasoningOutput,
)
from tritonpy_frontend_openai.sampling import check_common, limit_of, sampling_of
from tritonpy_frontend_openai.text_contract import (
    UNLIMITED,
    GenerationParameters,
    KnownParameters,
    build_request,
)
from tritonpy_frontend_openai.text_models import TextModel
from tritonpy_frontend_openai.tool_calls import PARSERS, JsonArrayCalls

# Parsers whose marks are special tokens, which engines leave out of the text by default.
_SPECIAL_MARKS = frozenset({"mistral"})


class ChatGeneration:
    """What to generate for a chat, and what each piece of each choice means.

    Raises ApiError if the model or the server cannot do what the body asks for.
    """

    def __init__(
        self, body: ChatBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        self._model = model
        self._options = options
        self._is_triton = options.compat == "triton"
        self._tools = _tools(body)
        self._choice = _tool_choice(body)
        self._check()
        self.choices = body.n or 1
        self.counts = TokenCounts([0] * self.choices, model.token_counter())
        self._parsers = [self._parser() for _ in range(self.choices)]
        self.is_plain = type(self._parsers[0]) is PlainOutput  # all text is content
        self._reasons: dict[int, str] = {}  # why each choice ended, if the model says so
        self._with_calls: set[int] = set()
        self._adapter = adapter
        self._max_tokens = self._limit()

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return a request for each choice. Renders the chat template."""
        return [
            build_request(self._model, each, sink, known, drops_unknown=self._is_triton)
            for each in self._parameters()
        ]

    def prompt(self) -> str:
        """Return the prompt: the chat template with the messages and the tools."""
        body = self._body
        variables = dict(body.chat_template_kwargs or {})
        if body.reasoning_effort is not None:
            variables.setdefault("reasoning_effort", body.reasoning_effort)
        tools = None if self._choice == "none" else self._tools
        prompt = self._model.template().render(
            [_template_message(each) for each in body.messages],
            [msgspec.to_builtins(tool) for tool in tools] if tools else None,
            add_generation_prompt=body.add_generation_prompt and not body.continue_final_message,
            variables=variables,
        )
        return _cut_after(prompt, body.messages[-1]) if body.continue_final_message else prompt

    def count(self, piece: ChoicePiece) -> None:
        """Count the tokens of a piece whose text is all content (`is_plain`)."""
        self.counts.add(piece.index, piece.piece)
        if piece.piece.finish_reason is not None:
            self._reasons[piece.index] = piece.piece.finish_reason

    def feed(self, piece: ChoicePiece) -> Sequence[OutputEvent]:
        """Return the parts of the response that a piece completes. Counts its tokens."""
        self.count(piece)
        return self._noted(piece.index, self._parsers[piece.index].feed(piece.piece.text))

    def finish(self, index: int) -> Sequence[OutputEvent]:
        """Return the parts that are still held back when a choice ends."""
        return self._noted(index, self._parsers[index].finish())

    def finish_reason(self, index: int) -> str:
        """Return why a choice ended: stop, length, tool_calls or content_filter."""
        is_named = isinstance(self._choice, NamedToolChoice)
        is_first = self._choice == "required" and self._is_triton
        reason = self._reasons.get(index)
        if index in self._with_calls and reason != "length" and not is_named and not is_first:
            return "tool_calls"
        if self._is_triton:
            return "stop"
        if reason is not None:
            return reason
        generated = self.counts.completion_of.get(index)
        return "length" if generated is not None and generated == self._max_tokens else "stop"

    def is_too_long(self, index: int) -> bool:
        """Return whether a tool call exceeds the limit, so that the response must end."""
        return self._parsers[index].held_bytes > self._options.max_tool_call_bytes

    def _noted(self, index: int, events: Sequence[OutputEvent]) -> Sequence[OutputEvent]:
        if events and any(isinstance(each, CallStart) for each in events):
            self._with_calls.add(index)
        return events

    def _parameters(self) -> list[GenerationParameters]:
        body, model = self._body, self._model
        sampling = sampling_of(body)
        if model.options.tool_parser in _SPECIAL_MARKS and self._parses_tools:
            sampling.setdefault("skip_special_tokens", False)
        prompt = self.prompt()
        self.counts.add_prompt(0, prompt)
        logprobs = (body.top_logprobs or 1) if body.logprobs else None
        return [
            GenerationParameters(
                prompt,
                bool(body.stream),
                self._max_tokens,
                _seeded(sampling, index),
                logprobs,
                self._adapter,
                self._guide(),
            )
            for index in range(self.choices)
        ]

    @property
    def _parses_tools(self) -> bool:
        return bool(self._tools) and self._choice in {"auto", "required"}

    def _check(self) -> None:
        body, options = self._body, self._model.options
        check_common(body, triton=self._is_triton)
        if self._is_triton and body.logit_bias is not None:
            raise ApiError("logit bias is not currently supported")
        if (
            self._is_triton
            and self._model.backend != "vllm"
            and (body.logprobs or body.top_logprobs is not None)
        ):
            raise ApiError("logprobs are currently available only for the vLLM backend")
        if body.top_logprobs is not None and not body.logprobs:
            raise ApiError(
                "`top_logprobs` can only be used when `logprobs` is True", param="top_logprobs"
            )
        if self._choice == "required" and not self._tools:
            raise ApiError(
                '"required" tool choice requires CreateChatCompletionRequest.tools to be provided',
                param="tool_choice",
            )
        if isinstance(self._choice, NamedToolChoice):
            if not self._tools:
                raise ApiError(
                    "Named tool choice requires CreateChatCompletionRequest.tools to be provided",
                    param="tool_choice",
                )
            name = self._choice.function.name
            if all(tool.function.name != name for tool in self._tools):
                raise ApiError(
                    f"Tool '{name}' has not been passed in `tools`.", param="tool_choice"
                )
        if self._choice == "auto" and not options.tool_parser:
            if body.tool_choice == "auto" and (self._tools or self._is_triton):
                raise self._no_parser('"auto" tool choice')
            if self._tools:
                raise self._no_parser("having tools in the request")
        if not self._model.is_structured:
            self._check_unstructured()

    def _check_unstructured(self) -> None:
        reason = (
            f"model '{self._model.name}' cannot restrict its output. Set structured_output for it "
            "if it can."
        )
        if self._choice == "required" or isinstance(self._choice, NamedToolChoice):
            raise unsupported("tool_choice", reason)
        wanted = self._body.response_format
        if wanted is not None and wanted.type != "text" and not self._is_triton:
            raise unsupported("response_format", reason)

    def _no_parser(self, what: str) -> ApiError:
        if self._is_triton:
            return ApiError(f"{what} requires --tool-call-parser to be set")
        name = self._model.name
        return ApiError(
            f"{what} requires a tool parser: set frontends.openai.models.{name}.tool_parser in "
            f"server.yaml, or the parameter openai.tool_parser in the configuration of '{name}', "
            f"to one of: {', '.join(sorted(PARSERS))}",
            param="tools",
        )

    def _limit(self) -> int | None:
        body = self._body
        given = body.max_completion_tokens
        if given is None:
            given = body.max_tokens
        return limit_of(
            given, self._model, None if self._is_triton else UNLIMITED, triton=self._is_triton
        )

    def _guide(self) -> dict[str, Any] | None:
        if isinstance(self._choice, NamedToolChoice):
            return {"json": _parameters_schema(self._tools or [], self._choice.function.name)}
        if self._choice == "required":
            tools = self._tools or []
            if self._is_triton:
                return {"json": _parameters_schema(tools, tools[0].function.name)}
            return {
                "json": _calls_schema(tools, several=self._body.parallel_tool_calls is not False)
            }
        wanted = self._body.response_format
        if wanted is None or wanted.type == "text" or self._is_triton:
            return None  # Triton's frontend accepts the member and drops it
        if wanted.type == "json_object":
            return {"json_object": True}
        schema = wanted.json_schema.schema if wanted.json_schema is not None else None
        if schema is None:
            raise ApiError(
                "response_format json_schema needs json_schema.schema", param="response_format"
            )
        return {"json": schema}

    def _parser(self) -> OutputParser:
        parser: OutputParser = PlainOutput()
        if isinstance(self._choice, NamedToolChoice):
            return FunctionOutput(self._choice.function.name)
        if self._choice == "required":
            if self._is_triton and self._tools:
                return FunctionOutput(self._tools[0].function.name)
            return JsonArrayCalls()
        options = self._model.options
        if self._parses_tools:
            parser = PARSERS[options.tool_parser]()
        if options.reasoning_parser:
            parser = ReasoningOutput(parser, starts_open=options.reasoning_parser == "deepseek_r1")
        return parser


def _tools(body: ChatBody) -> list[Tool] | None:
    """Return the tools. The old member `functions` means the same."""
    if body.tools:
        return body.tools
    return [Tool(each) for each in body.functions] if body.functions else None


def _tool_choice(body: ChatBody) -> str | NamedToolChoice:
    """Return the tool choice; by default `auto` with tools and `none` without."""
    choice = body.tool_choice
    if choice is None and body.function_call is not None:
        called = body.function_call
        choice = called if isinstance(called, str) else NamedToolChoice(called)
    if choice is None:
        return "auto" if body.tools or body.functions else "none"
    return choice


def _template_message(message: ChatMessage) -> dict[str, Any]:
    """Return a message as chat templates expect it: text content, arguments as objects."""
    result: dict[str, Any] = {"role": message.role, "content": _text(message)}
    if message.role == "developer":
        result["role"] = "system"
    for name in ("name", "tool_call_id", "reasoning_content"):
        if (value := getattr(message, name)) is not None:
            result[name] = value
    calls = message.tool_calls
    if calls is None and message.function_call is not None:
        result["tool_calls"] = [{"type": "function", "function": _called(message.function_call)}]
    elif calls:
        result["tool_calls"] = [
            {"id": each.id, "type": each.type, "function": _called(each.function)} for each in calls
        ]
    return result


def _called(function: Any) -> dict[str, Any]:
    try:
        arguments = json.loads(function.arguments) if function.arguments else {}
    except (ValueError, RecursionError):
        arguments = function.arguments
    return {"name": function.name, "arguments": arguments}


def _text(message: ChatMessage) -> str:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in {"text", "input_text", "output_text", "refusal"}:
            raise ApiError(
                f"only text message is supported, but got {part.type}",
                param="messages",
                code="unsupported_content",
            )
    return "\n".join(part.text or "" for part in content)


def _cut_after(prompt: str, last: ChatMessage) -> str:
    """Return the prompt up to the end of the last message, which the model continues."""
    text = _text(last).strip()
    end = prompt.rfind(text)
    return prompt[: end + len(text)] if text and end >= 0 else prompt


def _seeded(sampling: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the parameters of a choice. Choices with one seed would be identical."""
    values = dict(sampling)
    if index and "seed" in values:
        values["seed"] += index
    return values


def _parameters_schema(tools: Sequence[Tool], name: str) -> dict[str, Any]:
    found = next(tool.function for tool in tools if tool.function.name == name)
    return found.parameters or {"type": "object"}


def _calls_schema(tools: Sequence[Tool], *, several: bool) -> dict[str, Any]:
    """Return the JSON schema of an array of calls, as vLLM asks for required calls."""
    definitions: dict[str, Any] = {}
    forms = []
    for tool in tools:
        parameters = dict(tool.function.parameters or {"type": "object"})
        definitions |= parameters.pop("$defs", {})
        forms.append(
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "enum": [tool.function.name]},
                    "parameters": parameters,
                },
                "required": ["name", "parameters"],
            }
        )
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": {"anyOf": forms}}
    if not several:
        schema["maxItems"] = 1
    if definitions:
        schema["$defs"] = definitions
    return schema
