"""Chat completions: messages in, a message of the assistant out, as one document or a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import ChatBody
from tritonpy_frontend_openai.call import StreamedCall, event
from tritonpy_frontend_openai.chat_generation import ChatGeneration
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import DONE, ChunkWriter, chat_logprobs, new_id
from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.output import (
    CallArguments,
    CallStart,
    Content,
    OutputEvent,
    ParsedMessage,
    Reasoning,
)
from tritonpy_frontend_openai.text_contract import KnownParameters
from tritonpy_frontend_openai.text_models import TextModel

_ROLE = "assistant"


class ChatCall(StreamedCall):
    """One chat completion."""

    operation = "chat"

    def __init__(
        self, body: ChatBody, model: TextModel, adapter: str, options: OpenAiOptions
    ) -> None:
        self._body = body
        self._is_triton = options.compat == "triton"
        self._generation = ChatGeneration(body, model, adapter, options)
        self._id = new_id("chatcmpl-")
        self._created = int(time.time())
        self._writer = ChunkWriter(
            self._id,
            "chat.completion.chunk",
            self._created,
            body.model,
            has_usage=body.include_usage,
        )
        self.stream = bool(body.stream)
        self.choices = self._generation.choices
        self._call_ids: dict[tuple[int, int], str] = {}
        self._top = body.top_logprobs or 0

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return a request for each choice. Renders the chat template."""
        return self._generation.requests(sink, known)

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the response for all pieces of all choices."""
        generation, choices = self._generation, []
        for index in range(self.choices):
            own = [each for each in pieces if each.index == index]
            parsed = ParsedMessage()
            for piece in own:
                parsed.add(generation.feed(piece))
            parsed.add(generation.finish(index))
            logprobs = [token for each in own for token in each.piece.logprobs or ()]
            choices.append(
                {
                    "index": index,
                    "message": self._message(index, parsed),
                    "logprobs": chat_logprobs(logprobs, self._top) if self._body.logprobs else None,
                    "finish_reason": generation.finish_reason(index),
                }
            )
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._body.model,
            "choices": choices,
            "usage": generation.counts.usage(),
            "system_fingerprint": None,
        }

    def opening(self) -> Iterator[bytes]:
        """Yield the role of each choice."""
        for index in range(self.choices):
            yield self._writer.chunk(_delta(index, {"role": _ROLE, "content": ""}))

    def events(self, piece: ChoicePiece) -> Iterator[bytes]:
        """Yield the events for one piece."""
        index, content, writer = piece.index, piece.piece, self._writer
        if self._generation.is_plain and content.logprobs is None:
            self._generation.count(piece)
            if content.text:
                yield writer.content_chunk(index, content.text)
        else:
            parts = self._generation.feed(piece)
            logprobs = None
            if content.logprobs is not None:
                logprobs = chat_logprobs(content.logprobs, self._top)
                parts = parts or [Content("")]
            for part in parts:
                delta = self._event_delta(index, part)
                yield writer.chunk(_delta(index, delta, logprobs=logprobs))
                logprobs = None  # they belong to the first chunk only
        if piece.final:
            for part in self._generation.finish(index):
                yield writer.chunk(_delta(index, self._event_delta(index, part)))
            yield writer.chunk(_delta(index, {}, self._generation.finish_reason(index)))

    def is_too_long(self, index: int) -> bool:
        """Return whether a tool call exceeds the limit, so that the response must end."""
        return self._generation.is_too_long(index)

    def truncation(self, index: int) -> Iterator[bytes]:
        """Yield the last event of a choice whose tool call is too long."""
        yield self._writer.chunk(_delta(index, {"content": ""}, "length"))

    def closing(self) -> Iterator[bytes]:
        """Yield the token counts, if the client wants them, and the end."""
        yield from self._writer.closing(self._generation.counts, triton=self._is_triton)

    def failure(self, error: ApiError) -> Iterator[bytes]:
        """Yield the error and the end."""
        yield event({"error": error.object()})
        yield DONE

    def _message(self, index: int, parsed: ParsedMessage) -> dict[str, Any]:
        content = "".join(parsed.content)
        message: dict[str, Any] = {"role": _ROLE, "content": content, "refusal": None}
        if parsed.reasoning:
            message["reasoning_content"] = "".join(parsed.reasoning)
        if parsed.calls:
            message["content"] = content if content.strip() or self._is_triton else None
            message["tool_calls"] = [
                {
                    "id": self._call_id(index, number),
                    "type": "function",
                    "function": {"name": name, "arguments": "".join(arguments)},
                }
                for number, (name, arguments) in enumerate(parsed.calls)
            ]
        return message

    def _event_delta(self, index: int, event: OutputEvent) -> dict[str, Any]:
        if isinstance(event, Content):
            return {"content": event.text}
        if isinstance(event, Reasoning):
            return {"reasoning_content": event.text}
        call: dict[str, Any]
        if isinstance(event, CallStart):
            call = {
                "index": event.number,
                "id": self._call_id(index, event.number),
                "type": "function",
                "function": {"name": event.name, "arguments": ""},
            }
        else:
            assert isinstance(event, CallArguments)  # noqa: S101
            call = {"index": event.number, "function": {"arguments": event.text}}
        return {"tool_calls": [call]}

    def _call_id(self, index: int, number: int) -> str:
        return self._call_ids.setdefault((index, number), new_id("call_"))


def _delta(
    index: int,
    delta: Mapping[str, Any],
    reason: str | None = None,
    logprobs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
