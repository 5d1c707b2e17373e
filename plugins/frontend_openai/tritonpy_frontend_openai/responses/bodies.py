"""The body of the Responses API, and the chat that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from tritonpy_frontend_openai.bodies import (
    CalledFunction,
    ChatBody,
    ChatMessage,
    Count,
    FunctionDefinition,
    FunctionName,
    JsonSchemaFormat,
    ModelBody,
    NamedToolChoice,
    ResponseFormat,
    Tool,
    ToolCall,
)
from tritonpy_frontend_openai.errors import ApiError, unsupported

_TEXTS = frozenset(
    {"input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text"}
)


class ItemPart(Struct):
    """A part of the content of an item; only text is supported."""

    type: str
    text: str | None = None
    refusal: str | None = None


class InputItem(Struct):
    """An item of the input: a message, a function call, its output, or reasoning."""

    type: str = "message"
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[ItemPart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[ItemPart] | None = None
    summary: list[ItemPart] = field(default_factory=list)


class ResponseTool(Struct):
    """A tool that the model may call; only functions work."""

    type: str
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedFunction(Struct):
    """A tool choice that requires one function."""

    name: str
    type: Literal["function"] = "function"


class ResponseTextFormat(Struct):
    """The required form of the text."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextOptions(Struct):
    """Options of the text."""

    format: ResponseTextFormat = field(default_factory=ResponseTextFormat)


class ReasoningOptions(Struct):
    """Options of the reasoning."""

    effort: str | None = None


class ResponseBody(ModelBody, kw_only=True):
    """The body of `POST /v1/responses`."""

    input: str | list[InputItem]
    instructions: str | None = None
    max_output_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    tools: list[ResponseTool] = field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | NamedFunction = "auto"
    parallel_tool_calls: bool | None = None
    text: TextOptions = field(default_factory=TextOptions)
    reasoning: ReasoningOptions | None = None
    metadata: dict[str, str] | None = None
    truncation: Literal["auto", "disabled"] | None = None


def chat_of(body: ResponseBody, earlier: Sequence[ChatMessage]) -> ChatBody:
    """Return the chat that a body continues; `earlier` are the messages of earlier responses.

    Raises ApiError.
    """
    system = [ChatMessage("system", body.instructions)] if body.instructions else []
    chat = ChatBody(
        model=body.model,
        messages=[*system, *earlier, *input_messages(body)],
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        stream=bool(body.stream),
        tools=[_tool(each) for each in body.tools] or None,
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body.text.format),
        sampler=dict(body.sampler),
    )
    if body.truncation == "auto":
        raise unsupported("truncation", "models refuse what exceeds their context")
    if body.tools:
        choice = body.tool_choice
        chat.tool_choice = (
            NamedToolChoice(FunctionName(choice.name))
            if isinstance(choice, NamedFunction)
            else choice
        )
    if body.reasoning is not None:
        chat.reasoning_effort = body.reasoning.effort
    return chat


def input_messages(body: ResponseBody) -> list[ChatMessage]:
    """Return the messages of the input. Calls that follow each other are one message."""
    if isinstance(body.input, str):
        return [ChatMessage("user", body.input)]
    if not body.input:
        raise ApiError("input has no item", param="input")
    messages: list[ChatMessage] = []
    for item in body.input:
        if item.type == "message":
            messages.append(ChatMessage(item.role or "user", _text(item.content, "input")))
        elif item.type == "function_call":
            function = CalledFunction(item.name or "", item.arguments or "")
            call = ToolCall(function, item.call_id or "")
            last = messages[-1] if messages else None
            if last is not None and last.role == "assistant":
                last.tool_calls = [*(last.tool_calls or ()), call]
            else:
                messages.append(ChatMessage("assistant", None, tool_calls=[call]))
        elif item.type == "function_call_output":
            text = _text(item.output, "input")
            messages.append(ChatMessage("tool", text, tool_call_id=item.call_id))
        elif item.type != "reasoning":  # models reason again
            raise unsupported("input", f"items of the type '{item.type}' are unknown here")
    return messages


def _text(content: str | Sequence[ItemPart] | None, param: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in _TEXTS:
            raise unsupported(param, f"models here take text, not {part.type}")
    return "\n".join(part.text or part.refusal or "" for part in content)


def _tool(tool: ResponseTool) -> Tool:
    if tool.type != "function":
        raise unsupported("tools", f"'{tool.type}' is a tool of OpenAI's servers")
    return Tool(FunctionDefinition(tool.name, tool.description, tool.parameters, tool.strict))


def _format(given: ResponseTextFormat) -> ResponseFormat | None:
    if given.type == "text":
        return None
    schema = JsonSchemaFormat(given.name, given.schema, given.strict)
    return ResponseFormat(given.type, schema if given.type == "json_schema" else None)
