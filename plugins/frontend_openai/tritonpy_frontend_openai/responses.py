"""The objects of responses: choices, log probabilities, token counts, and the chunks of streams.

Source: the API reference of OpenAI for chat completions and completions.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tritonpy_frontend_openai.errors import encode
from tritonpy_frontend_openai.text_contract import Piece

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": waiting\n\n"


def new_id(prefix: str) -> str:
    """Return an unguessable id with `prefix`."""
    return prefix + secrets.token_hex(16)


def event(value: Any) -> bytes:
    """Return `value` as a server-sent event."""
    return b"data: " + encode(value) + b"\n\n"


class TokenCounts:
    """Sums the token counts of the choices of one call. The prompt of each choice counts once."""

    def __init__(self, prompts: Sequence[int]) -> None:
        """Store for each choice the index of its prompt."""
        self._prompt_of = prompts
        self._prompt_tokens: dict[int, int] = {}
        self._cached_tokens: dict[int, int] = {}
        self.completion_of: dict[int, int] = {}

    def add(self, choice: int, piece: Piece) -> None:
        """Count the tokens of a piece of a choice."""
        prompt = self._prompt_of[choice]
        if piece.prompt_tokens is not None:  # 0 until the engine knows it
            known = self._prompt_tokens.get(prompt, 0)
            self._prompt_tokens[prompt] = max(known, piece.prompt_tokens)
        if piece.cached_tokens is not None:
            self._cached_tokens[prompt] = piece.cached_tokens
        if piece.completion_tokens is not None:
            counts = self.completion_of
            counts[choice] = counts.get(choice, 0) + piece.completion_tokens

    def usage(self) -> dict[str, Any] | None:
        """Return the usage object, None if the model reports no counts."""
        if not self._prompt_tokens:
            return None
        prompt, completion = sum(self._prompt_tokens.values()), sum(self.completion_of.values())
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        if self._cached_tokens:
            usage["prompt_tokens_details"] = {"cached_tokens": sum(self._cached_tokens.values())}
        return usage


class ChunkWriter:
    """Writes the events of one stream. All chunks have the same id, time and model.

    `kind` is the value of `object`. With `has_usage`, each chunk has the member `usage`.
    """

    def __init__(self, id_: str, kind: str, created: int, model: str, *, has_usage: bool) -> None:
        members = {
            "id": id_,
            "object": kind,
            "created": created,
            "model": model,
            "system_fingerprint": None,
        }
        self._members = members
        head = encode(members)[:-1]
        self._head = b"data: " + head + b',"choices":['
        self._tail = b'],"usage":null}\n\n' if has_usage else b"]}\n\n"
        self._content: dict[int, bytes] = {}

    def chunk(self, choice: Mapping[str, Any]) -> bytes:
        """Return the event of one choice."""
        return self._head + encode(choice) + self._tail

    def content_chunk(self, index: int, text: str) -> bytes:
        """Return the event for a part of the content of a chat; the most frequent one."""
        head = self._content.get(index)
        if head is None:
            head = self._head + b'{"index":%d,"delta":{"content":' % index
            self._content[index] = head
        try:
            encoded = msgspec.json.encode(text)
        except UnicodeEncodeError:
            encoded = encode(text)
        return head + encoded + b'},"logprobs":null,"finish_reason":null}' + self._tail

    def usage_chunk(self, usage: Mapping[str, Any] | None) -> bytes:
        """Return the last event, which has the token counts and no choice."""
        return event({**self._members, "choices": [], "usage": usage})


def _ranked(token: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of one token. The chosen token comes first, as in vLLM's output."""
    return list(token.values())


def chat_logprobs(tokens: Sequence[Mapping[str, Any]] | None, top: int) -> dict[str, Any] | None:
    """Return the log probabilities of a chat. `top` is the number of alternatives."""
    if not tokens:
        return None
    content = []
    for token in tokens:
        alternatives = _ranked(token)
        entry = _token_entry(alternatives[0])
        best = sorted(alternatives, key=lambda each: each.get("rank") or 1)[:top]
        entry["top_logprobs"] = [_token_entry(each) for each in best]
        content.append(entry)
    return {"content": content, "refusal": None}


def completion_logprobs(
    tokens: Sequence[Mapping[str, Any]] | None, offset: int
) -> dict[str, Any] | None:
    """Return the log probabilities of a completion. `offset` is where its text begins."""
    if not tokens:
        return None
    result: dict[str, list[Any]] = {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [],
    }
    for token in tokens:
        alternatives = _ranked(token)
        text = str(alternatives[0].get("decoded_token") or "")
        result["text_offset"].append(offset)
        result["token_logprobs"].append(alternatives[0].get("logprob"))
        result["tokens"].append(text)
        result["top_logprobs"].append(
            {str(each.get("decoded_token") or ""): each.get("logprob") for each in alternatives}
        )
        offset += len(text)
    return result


def _token_entry(token: Mapping[str, Any]) -> dict[str, Any]:
    text = str(token.get("decoded_token") or "")
    return {
        "token": text,
        "logprob": token.get("logprob"),
        "bytes": list(text.encode("utf-8", "replace")),
    }
