"""What a response says, read after the load: its texts with their times, and its token counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tritonpy_bench.generation.connection import TimedExchange

_OK = 200
_DONE = b"[DONE]"


class GenerationReply(msgspec.Struct):
    """A response. `texts` are its non-empty parts with their times in ns.

    Token counts are None if the server reports none. `error` is empty for a complete response.
    """

    texts: list[tuple[int, str]]
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(text for _, text in self.texts)


def read_reply(exchange: TimedExchange, *, streams: bool) -> GenerationReply:
    """Return what the response of an exchange says."""
    reply = GenerationReply([], error=exchange.error)
    if exchange.is_cancelled or (exchange.error and not exchange.parts):
        return reply
    if exchange.status != _OK:
        body = b"".join(part for _, part in exchange.parts)
        reply.error = f"{exchange.status} {_error_text(body)}"
        return reply
    try:
        events = _events(exchange) if streams else [_document(exchange)]
        for at_ns, event in events:
            _read_event(reply, at_ns, event)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, IndexError) as error:
        reply.error = f"the response has an unknown form: {error!r}"
    return reply


def _document(exchange: TimedExchange) -> tuple[int, Any]:
    body = b"".join(part for _, part in exchange.parts)
    return exchange.ended_ns, msgspec.json.decode(body)


def _events(exchange: TimedExchange) -> Iterator[tuple[int, Any]]:
    """Yield the JSON of each server-sent event with the time of its last byte."""
    waiting = b""
    for at_ns, part in exchange.parts:
        waiting += part
        if b"\n\n" not in part and b"\n\n" not in waiting:
            continue
        *events, waiting = waiting.replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            for line in event.split(b"\n"):
                data = line.removeprefix(b"data:").strip()
                if line.startswith(b"data:") and data != _DONE:
                    yield at_ns, msgspec.json.decode(data)


def _read_event(reply: GenerationReply, at_ns: int, event: Mapping[str, Any]) -> None:
    if "error" in event:
        error = event["error"]
        reply.error = str(error["message"] if isinstance(error, dict) else error)
        return
    text = ""
    for choice in event.get("choices", ()):
        message = choice.get("delta") or choice.get("message") or choice
        text += message.get("reasoning_content") or message.get("reasoning") or ""
        text += message.get("content") or message.get("text") or ""
        reply.finish_reason = choice.get("finish_reason") or reply.finish_reason
    if "text_output" in event:
        text = str(event["text_output"])
    if text:
        reply.texts.append((at_ns, text))
    usage = event.get("usage")
    if usage:
        reply.input_tokens = usage.get("prompt_tokens")
        reply.output_tokens = usage.get("completion_tokens")
        details = usage.get("prompt_tokens_details") or {}
        reply.cached_tokens = details.get("cached_tokens")


def _error_text(body: bytes) -> str:
    try:
        document = msgspec.json.decode(body)
        error = document.get("error", document.get("detail", ""))
        return str(error["message"] if isinstance(error, dict) else error)
    except (msgspec.DecodeError, AttributeError, KeyError):
        return body[:100].decode("utf-8", "replace")
