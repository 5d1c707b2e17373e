"""The conversation: messages, the commands of its user, and the figures of each response."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from tritonpy_chat.client import ChatClient, ChatFailed

HELP = """\
/system TEXT  set the instructions for the model, and begin again
/clear        begin again
/retry        ask the last question again
/exit         end the chat (or Ctrl-D)
Ctrl-C stops a response."""


class Conversation:
    """A chat with one model. `write` receives the response, `note` everything else.

    `members` are further members of each request, such as `temperature`.
    """

    def __init__(
        self,
        client: ChatClient,
        model: str,
        members: Mapping[str, Any],
        write: Callable[[str], None],
        note: Callable[[str], None],
        system: str = "",
    ) -> None:
        self._client = client
        self._model = model
        self._members = members
        self._write = write
        self._note = note
        self._system = system
        self._messages: list[dict[str, str]] = []

    def handle(self, line: str) -> bool:
        """Answer a line of the user; return whether the chat goes on. Raises ChatFailed."""
        command, _, rest = line.strip().partition(" ")
        if not command:
            return True
        if command in {"/exit", "/quit"}:
            return False
        if command == "/clear":
            self._messages.clear()
        elif command == "/system":
            self._system = rest
            self._messages.clear()
        elif command == "/retry":
            self._retry()
        elif command == "/help":
            self._note(HELP)
        elif command.startswith("/") and command[1:].isalpha():
            self._note(f"There is no command {command}.\n{HELP}")
        else:
            self._ask(line.strip())
        return True

    def _retry(self) -> None:
        while self._messages and self._messages[-1]["role"] != "user":
            self._messages.pop()
        if not self._messages:
            self._note("There is no question yet.")
            return
        self._ask(self._messages.pop()["content"])

    def _ask(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})
        system = [{"role": "system", "content": self._system}] if self._system else []
        parts: list[str] = []
        began, first_s, usage = time.monotonic(), None, None
        is_stopped = False
        try:
            with closing(
                self._client.chat(self._model, [*system, *self._messages], **self._members)
            ) as chunks:
                for chunk in chunks:
                    usage = chunk.get("usage") or usage
                    for choice in chunk["choices"]:
                        part = choice["delta"].get("content") or ""
                        if part and first_s is None:
                            first_s = time.monotonic() - began
                        parts.append(part)
                        self._write(part)
        except KeyboardInterrupt:
            is_stopped = True
        except (ChatFailed, OSError):
            self._messages.pop()  # a refused question is not part of the conversation
            raise
        self._messages.append({"role": "assistant", "content": "".join(parts)})
        self._write("\n")
        self._note("stopped" if is_stopped else _figures(time.monotonic() - began, first_s, usage))


def _figures(total_s: float, first_s: float | None, usage: Mapping[str, Any] | None) -> str:
    """Return the figures of a response: tokens, tokens per second, and the first token's time."""
    if first_s is None:
        return "the model wrote nothing"
    if usage is None:
        return f"first token after {first_s:.2f} s"
    tokens = usage["completion_tokens"]
    rate = f", {(tokens - 1) / (total_s - first_s):.1f} tokens/s" if tokens > 1 else ""
    return f"{tokens} tokens{rate}, first token after {first_s:.2f} s"
