"""Responses: a chat in the form of OpenAI's Responses API, as one document or a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.bodies import CalledFunction, ChatMessage, ToolCall
from tritonpy_frontend_openai.call import StreamedCall, event
from tritonpy_frontend_openai.chat_generation import ChatGeneration
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.completion_objects import new_id
from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_frontend_openai.output import (
    CallArguments,
    CallStart,
    Content,
    OutputEvent,
    Reasoning,
)
from tritonpy_frontend_openai.responses.bodies import ResponseBody, chat_of, input_messages
from tritonpy_frontend_openai.text_contract import KnownParameters
from tritonpy_frontend_openai.text_models import TextModel

Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ResponsesCall(StreamedCall):
    """One call of `POST /v1/responses`. `earlier` are the messages of earlier responses."""

    choices = 1

    operation = "chat"

    def __init__(
        self,
        body: ResponseBody,
        model: TextModel,
        adapter: str,
        options: OpenAiOptions,
        earlier: Sequence[ChatMessage],
    ) -> None:
        if body.background and body.stream:
            raise ApiError("background responses have no stream", param="stream")
        if body.background and body.store is False:
            raise ApiError("background responses need store", param="store")
        self._body = body
        self._generation = ChatGeneration(chat_of(body, earlier), model, adapter, options)
        self._earlier = list(earlier)
        self.id = new_id("resp_")
        self.stream = bool(body.stream)
        self._created = int(time.time())
        self._items: list[_Item] = []
        self._sequence = 0
        self._is_truncated = False

    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the request. Renders the chat template."""
        return self._generation.requests(sink, known)

    def messages(self) -> list[ChatMessage]:
        """Return the conversation with this response, for the next one."""
        text = "".join(each.text for each in self._items if each.kind is Content)
        calls = [
            ToolCall(CalledFunction(each.name, each.text), each.call_id)
            for each in self._items
            if each.kind is CallArguments
        ]
        answer = ChatMessage("assistant", text, tool_calls=calls or None)
        return [*self._earlier, *input_messages(self._body), answer]

    def document(self, pieces: Sequence[ChoicePiece]) -> dict[str, Any]:
        """Return the response."""
        for piece in pieces:
            for _ in self._deltas(self._generation.feed(piece)):
                pass
        for _ in self._deltas(self._generation.finish(0)):
            pass
        return self.response(self.status())

    def response(self, status: Status, error: ApiError | None = None) -> dict[str, Any]:
        """Return the response as it is now."""
        body = self._body
        incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
        failure = None
        if error is not None:
            failure = {"code": error.code or "server_error", "message": error.message}
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": bool(body.background),
            "error": failure,
            "incomplete_details": incomplete,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": body.metadata or {},
            "model": body.model,
            "output": [each.object("completed") for each in self._items],
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": body.reasoning and body.reasoning.effort, "summary": None},
            "store": body.store is not False,
            "temperature": body.temperature,
            "text": {"format": {"type": body.text.format.type}},
            "tool_choice": msgspec.to_builtins(body.tool_choice),
            "tools": msgspec.to_builtins(body.tools),
            "top_p": body.top_p,
            "truncation": "disabled",
            "usage": self._usage() if status in {"completed", "incomplete"} else None,
            "user": body.user,
        }

    def opening(self) -> Iterator[bytes]:
        """Yield the response without output."""
        for kind in ("created", "in_progress"):
            yield self._event(f"response.{kind}", response=self.response("in_progress"))

    def events(self, piece: ChoicePiece) -> Iterator[bytes]:
        """Yield the events for one piece."""
        yield from self._deltas(self._generation.feed(piece))
        if piece.final:
            yield from self._deltas(self._generation.finish(0))

    def is_too_long(self, index: int) -> bool:
        """Return whether a tool call exceeds the limit, so that the response must end."""
        return self._generation.is_too_long(index)

    def truncation(self, index: int) -> Iterator[bytes]:
        """Mark the response as incomplete."""
        self._is_truncated = True
        yield from ()

    def closing(self) -> Iterator[bytes]:
        """Yield the end of the last item and the whole response."""
        yield from self._end_item()
        status = self.status()
        yield self._event(f"response.{status}", response=self.response(status))

    def failure(self, error: ApiError) -> Iterator[bytes]:
        """Yield the failed response."""
        yield self._event("response.failed", response=self.response("failed", error))

    def status(self) -> Status:
        """Return the status of a response whose text is complete."""
        is_cut = self._is_truncated or self._generation.finish_reason(0) == "length"
        return "incomplete" if is_cut else "completed"

    def _deltas(self, parts: Sequence[OutputEvent]) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, CallStart):
                yield from self._begin_item(_Item(CallArguments, name=part.name))
                continue
            last = self._items[-1] if self._items else None
            if last is None or last.kind is not type(part):
                if isinstance(part, Content) and last is not None and not part.text.strip():
                    continue  # white space between other items
                last = _Item(type(part))
                yield from self._begin_item(last)
            last.text += part.text
            yield self._event(last.delta_kind, **self._place(last), delta=part.text)

    def _begin_item(self, item: _Item) -> Iterator[bytes]:
        yield from self._end_item()
        self._items.append(item)
        yield self._event(
            "response.output_item.added",
            output_index=len(self._items) - 1,
            item=item.object("in_progress", empty=True),
        )
        if item.kind is Content:
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield self._event("response.content_part.added", **self._place(item), part=part)

    def _end_item(self) -> Iterator[bytes]:
        if not self._items:
            return
        item = self._items[-1]
        whole = {"arguments": item.text, "name": item.name}
        if item.kind is not CallArguments:
            whole = {"text": item.text}
        place = self._place(item)
        yield self._event(item.delta_kind.removesuffix("delta") + "done", **place, **whole)
        if item.kind is Content:
            part = item.object("completed")["content"][0]
            yield self._event("response.content_part.done", **place, part=part)
        yield self._event(
            "response.output_item.done",
            output_index=len(self._items) - 1,
            item=item.object("completed"),
        )

    def _place(self, item: _Item) -> dict[str, Any]:
        place: dict[str, Any] = {"item_id": item.id, "output_index": len(self._items) - 1}
        if item.kind is not CallArguments:
            place["content_index"] = 0
        if item.kind is Content:
            place["logprobs"] = []
        return place

    def _event(self, kind: str, **members: Any) -> bytes:
        number = self._sequence
        self._sequence += 1
        return event({"type": kind, "sequence_number": number, **members}, kind)

    def _usage(self) -> dict[str, Any] | None:
        usage = self._generation.counts.usage()
        if usage is None:
            return None
        cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
        return {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }


_ID_PREFIXES: dict[type, str] = {Content: "msg_", Reasoning: "rs_", CallArguments: "fc_"}
_DELTAS: dict[type, str] = {
    Content: "response.output_text.delta",
    Reasoning: "response.reasoning_text.delta",
    CallArguments: "response.function_call_arguments.delta",
}


class _Item:
    """An item of the output: a message, reasoning, or a function call."""

    def __init__(self, kind: type, name: str = "") -> None:
        self.kind = kind
        self.name = name
        self.id = new_id(_ID_PREFIXES[kind])
        self.call_id = new_id("call_") if kind is CallArguments else ""
        self.text = ""
        self.delta_kind = _DELTAS[kind]

    def object(self, status: str, *, empty: bool = False) -> dict[str, Any]:
        """Return the item; with `empty` it has no content yet."""
        if self.kind is CallArguments:
            return {
                "type": "function_call",
                "id": self.id,
                "call_id": self.call_id,
                "name": self.name,
                "arguments": self.text,
                "status": status,
            }
        if self.kind is Reasoning:
            content = [] if empty else [{"type": "reasoning_text", "text": self.text}]
            return {
                "type": "reasoning",
                "id": self.id,
                "summary": [],
                "content": content,
                "status": status,
            }
        text = {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}
        return {
            "type": "message",
            "id": self.id,
            "role": "assistant",
            "status": status,
            "content": [] if empty else [text],
        }
