"""Messages: a chat in Anthropic's form, as one document or a stream of named events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.call import StreamedCall, event
from tritonpy_frontend_openai.chat_generation import ChatGeneration
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import new_id
from tritonpy_frontend_openai.errors import ApiError, anthropic_error
from tritonpy_frontend_openai.messages.bodies import MessagesBody, chat_of
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.output import (
    CallArguments,
    CallStart,
    Content,
    OutputEvent,
    ParsedMessage,
)
from tritonpy_frontend_openai.text_contract import KnownParameters
from tritonpy_frontend_openai.text_models import TextModel

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessagesCall(StreamedCall):
    """One call of `POST /v1/messages`."""

    choices = 1
    heartbeat = event({"type": "ping"}, "ping")

    operation = "chat"

    def __init__(
        self, body: MessagesBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        self._generation = ChatGeneration(chat_of(body), model, adapter, options)
        self._id = new_id("msg_")
        self.stream = body.stream
        self._has_begun = False
        self._block = -1  # the index of the open block
        self._open: type | None = None  # the kind of its events

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the request. Renders the chat template."""
        return self._generation.requests(sink, known)

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the message."""
        parsed = ParsedMessage()
        for piece in pieces:
            parsed.add(self._generation.feed(piece))
        parsed.add(self._generation.finish(0))
        content: list[dict[str, Any]] = []
        if parsed.reasoning:
            thinking = "".join(parsed.reasoning)
            content.append({"type": "thinking", "thinking": thinking, "signature": ""})
        text = "".join(parsed.content)
        if text.strip() or not parsed.calls:
            content.append({"type": "text", "text": text})
        content += [
            _tool_use(name, _arguments("".join(arguments))) for name, arguments in parsed.calls
        ]
        return self._message(content, self._stop_reason())

    def events(self, piece: ChoicePiece) -> Iterator[bytes]:
        """Yield the events for one piece."""
        parts = self._generation.feed(piece)  # it counts the tokens of the prompt
        if not self._has_begun:
            self._has_begun = True
            start = {"type": "message_start", "message": self._message([], None)}
            yield event(start, "message_start")
        yield from self._deltas(parts)
        if piece.final:
            yield from self._deltas(self._generation.finish(0))
            if self._block < 0:
                yield from self._begin(Content, {"type": "text", "text": ""})
            yield from self._end()

    def is_too_long(self, index: int) -> bool:
        """Return whether a tool call exceeds the limit, so that the response must end."""
        return self._generation.is_too_long(index)

    def truncation(self, index: int) -> Iterator[bytes]:
        """Yield the last events of a response whose tool call is too long."""
        yield from self._end(reason="max_tokens")

    def closing(self) -> Iterator[bytes]:
        """Yield the end of the message."""
        yield event({"type": "message_stop"}, "message_stop")

    def failure(self, error: ApiError) -> Iterator[bytes]:
        """Yield the error."""
        yield event(anthropic_error(error), "error")

    def _deltas(self, parts: Sequence[OutputEvent]) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, CallStart):
                yield from self._begin(CallArguments, _tool_use(part.name, {}))
                continue
            if isinstance(part, CallArguments):
                delta = {"type": "input_json_delta", "partial_json": part.text}
            elif isinstance(part, Content):
                if self._open is not Content:
                    if not part.text.strip() and self._block >= 0:
                        continue  # white space after a tool call
                    yield from self._begin(Content, {"type": "text", "text": ""})
                delta = {"type": "text_delta", "text": part.text}
            else:
                if self._open is not type(part):
                    block = {"type": "thinking", "thinking": "", "signature": ""}
                    yield from self._begin(type(part), block)
                delta = {"type": "thinking_delta", "thinking": part.text}
            value = {"type": "content_block_delta", "index": self._block, "delta": delta}
            yield event(value, "content_block_delta")

    def _begin(self, kind: type, block: dict[str, Any]) -> Iterator[bytes]:
        """Yield the events that end the open block and begin another."""
        yield from self._end_block()
        self._block += 1
        self._open = kind
        start = {"type": "content_block_start", "index": self._block, "content_block": block}
        yield event(start, "content_block_start")

    def _end_block(self) -> Iterator[bytes]:
        if self._open is not None:
            self._open = None
            stop = {"type": "content_block_stop", "index": self._block}
            yield event(stop, "content_block_stop")

    def _end(self, reason: str = "") -> Iterator[bytes]:
        yield from self._end_block()
        delta = {"stop_reason": reason or self._stop_reason(), "stop_sequence": None}
        value = {"type": "message_delta", "delta": delta, "usage": self._usage()}
        yield event(value, "message_delta")

    def _message(self, content: list[dict[str, Any]], stop_reason: str | None) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._body.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(),
        }

    def _stop_reason(self) -> str:
        return _STOP_REASONS.get(self._generation.finish_reason(0), "end_turn")

    def _usage(self) -> dict[str, Any]:
        """Return the token counts. Anthropic counts cached tokens apart; unknown ones are 0."""
        usage = self._generation.counts.usage() or {"prompt_tokens": 0, "completion_tokens": 0}
        cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
        return {
            "input_tokens": max(0, usage["prompt_tokens"] - cached),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": usage["completion_tokens"],
        }


def _tool_use(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": new_id("toolu_"), "name": name, "input": arguments}


def _arguments(text: str) -> Any:
    """Return the arguments of a call as an object; those that are no JSON stay visible."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": text}
