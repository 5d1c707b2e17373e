"""The bodies of Anthropic's Messages API, and the chats that they stand for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from tritonpy_frontend_openai.bodies import (
    CalledFunction,
    ChatBody,
    ChatMessage,
    FunctionDefinition,
    FunctionName,
    ModelBody,
    NamedToolChoice,
    Tool,
    ToolCall,
)
from tritonpy_frontend_openai.errors import ApiError, unsupported


class TextBlock(Struct, tag_field="type", tag="text"):
    """A text in a message."""

    text: str


class ImageBlock(Struct, tag_field="type", tag="image"):
    """An image in a message, which no model here can see."""


class DocumentBlock(Struct, tag_field="type", tag="document"):
    """A document in a message, which no model here can read."""


class ToolUseBlock(Struct, tag_field="type", tag="tool_use"):
    """A tool call of the assistant."""

    id: str
    name: str
    input: dict[str, Any] = {}


class ToolResultBlock(Struct, tag_field="type", tag="tool_result"):
    """The result of a tool call."""

    tool_use_id: str
    content: str | list[TextBlock | ImageBlock | DocumentBlock] = ""
    is_error: bool = False


class ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    """The reasoning of the assistant."""

    thinking: str
    signature: str = ""


class RedactedThinkingBlock(Struct, tag_field="type", tag="redacted_thinking"):
    """Reasoning that only Anthropic's models can read. It is left out."""

    data: str = ""


Block = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ToolUseBlock
    | ToolResultBlock
    | ThinkingBlock
    | RedactedThinkingBlock
)


class AnthropicMessage(Struct):
    """One message."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class AnthropicTool(Struct):
    """A tool that the model may call; only tools of the client, which have a schema, work."""

    name: str
    input_schema: dict[str, Any] | None = None
    description: str | None = None
    type: str = "custom"


class AnthropicToolChoice(Struct):
    """Which tool the model has to call."""

    type: Literal["auto", "any", "tool", "none"]
    name: str = ""
    disable_parallel_tool_use: bool = False


class Thinking(Struct):
    """Whether the model reasons before it answers."""

    type: Literal["enabled", "disabled", "adaptive"] = "disabled"


class CountTokensBody(ModelBody, kw_only=True):
    """The body of `POST /v1/messages/count_tokens`."""

    messages: Annotated[list[AnthropicMessage], Meta(min_length=1)]
    system: str | list[TextBlock] = ""
    tools: list[AnthropicTool] = field(default_factory=list)
    tool_choice: AnthropicToolChoice | None = None
    thinking: Thinking | None = None


class MessagesBody(CountTokensBody, kw_only=True):
    """The body of `POST /v1/messages`."""

    max_tokens: Annotated[int, Meta(ge=1)]
    stream: bool = False
    stop_sequences: list[str] = field(default_factory=list)
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None


def chat_of(body: CountTokensBody) -> ChatBody:
    """Return the chat that a body stands for. Raises ApiError."""
    chat = ChatBody(
        model=body.model,
        messages=[*_system(body.system), *(each for m in body.messages for each in _messages(m))],
        tools=[_tool(each) for each in body.tools] or None,
        sampler=dict(body.sampler),
    )
    if body.tools and body.tool_choice is not None:
        chat.tool_choice = _tool_choice(body.tool_choice)
        chat.parallel_tool_calls = not body.tool_choice.disable_parallel_tool_use
    if body.thinking is not None:
        # Templates of reasoning models have one of these switches.
        thinks = body.thinking.type != "disabled"
        chat.chat_template_kwargs = {"enable_thinking": thinks, "thinking": thinks}
    if isinstance(body, MessagesBody):
        chat.max_tokens = body.max_tokens
        chat.stream = body.stream
        chat.stop = body.stop_sequences or None
        chat.temperature, chat.top_p = body.temperature, body.top_p
        if body.top_k is not None:
            chat.sampler["top_k"] = body.top_k
    return chat


def _system(system: str | Sequence[TextBlock]) -> list[ChatMessage]:
    text = system if isinstance(system, str) else "\n".join(each.text for each in system)
    return [ChatMessage("system", text)] if text else []


def _messages(message: AnthropicMessage) -> list[ChatMessage]:
    """Return the messages of a chat for one message: results of tools are messages of their own."""
    if isinstance(message.content, str):
        return [ChatMessage(message.role, message.content)]
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ChatMessage] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ThinkingBlock):
            thoughts.append(block.thinking)
        elif isinstance(block, ToolUseBlock):
            calls.append(ToolCall(CalledFunction(block.name, json.dumps(block.input)), block.id))
        elif isinstance(block, ToolResultBlock):
            text = _result(block)
            results.append(ChatMessage("tool", text, tool_call_id=block.tool_use_id))
        elif not isinstance(block, RedactedThinkingBlock):
            raise unsupported("messages", f"models here take text, not {_kind(block)}s")
    if not (texts or thoughts or calls):
        return results
    return [
        *results,
        ChatMessage(
            message.role,
            "\n".join(texts),
            tool_calls=calls or None,
            reasoning_content="\n".join(thoughts) or None,
        ),
    ]


def _result(block: ToolResultBlock) -> str:
    content = block.content
    if isinstance(content, str):
        return content
    for each in content:
        if not isinstance(each, TextBlock):
            raise unsupported("messages", f"models here take text, not {_kind(each)}s")
    return "\n".join(each.text for each in content if isinstance(each, TextBlock))


def _kind(block: Any) -> str:
    return str(type(block).__struct_config__.tag)


def _tool(tool: AnthropicTool) -> Tool:
    if tool.input_schema is None:
        raise unsupported("tools", f"'{tool.name}' is a tool of Anthropic's servers")
    return Tool(FunctionDefinition(tool.name, tool.description, tool.input_schema))


def _tool_choice(
    choice: AnthropicToolChoice,
) -> Literal["none", "auto", "required"] | NamedToolChoice:
    if choice.type == "tool":
        if not choice.name:
            raise ApiError("tool_choice of the type tool needs a name", param="tool_choice")
        return NamedToolChoice(FunctionName(choice.name))
    if choice.type == "any":
        return "required"
    return choice.type
