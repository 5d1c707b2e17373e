"""The objects of responses: choices, log probabilities, token counts, and the chunks of streams.

Source: the API reference of OpenAI for chat completions and completions.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tritonpy_frontend_openai.call import event
from tritonpy_frontend_openai.errors import encode
from tritonpy_frontend_openai.text_contract import Piece
from tritonpy_frontend_openai.tokenizer import FileTokenizer

DONE = b"data: [DONE]\n\n"


def new_id(prefix: str) -> str:
    """Return an unguessable id with `prefix`."""
    return prefix + secrets.token_hex(16)


class TokenCounts:
    """Sums the token counts of the choices of one call. The prompt of each choice counts once.

    `prompts` has for each choice the index of its prompt. `counter` counts the tokens of a model
    that does not.
    """

    def __init__(self, prompts: Sequence[int], counter: FileTokenizer | None = None) -> None:
        self._prompt_of = prompts
        self._counter = counter
        self._texts: dict[int, list[str]] = {}
        self._prompt_tokens: dict[int, int] = {}
        self._cached_tokens: dict[int, int] = {}
        self.completion_of: dict[int, int] = {}

    def add_prompt(self, index: int, prompt: str | list[int]) -> None:
        """Count the tokens of a prompt if the model does not."""
        if self._counter is not None:
            self._prompt_tokens[index] = (
                self._counter.count(prompt) if isinstance(prompt, str) else len(prompt)
            )

    def add(self, choice: int, piece: Piece) -> None:
        """Count the tokens of a piece of a choice."""
        if self._counter is not None:
            self._texts.setdefault(choice, []).append(piece.text)
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
        if self._counter is not None:
            for choice, texts in self._texts.items():
                self.completion_of[choice] = self._counter.count("".join(texts))
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
        self._has_usage = has_usage
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

    def closing(self, counts: TokenCounts, *, triton: bool) -> Iterator[bytes]:
        """Yield the token counts, if the client wants them, and the mark of the end.

        Triton's frontend leaves out counts that it does not know.
        """
        usage = counts.usage() if self._has_usage else None
        if usage is not None or (self._has_usage and not triton):
            yield event({**self._members, "choices": [], "usage": usage})
        yield DONE


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
