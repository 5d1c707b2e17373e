"""`tritonpy chat`: a chat in the terminal, with a model file or with a running server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from tritonpy import Command, StartupError
from tritonpy_chat.child_server import ChildServer
from tritonpy_chat.client import ChatClient, ChatFailed
from tritonpy_chat.conversation import Conversation

_KEY_VARIABLE = "OPENAI_API_KEY"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class ChatCommand(Command):
    """Chat with a language model in the terminal.

        tritonpy chat model.gguf                         serve the file and chat with it
        tritonpy chat --url http://localhost:9000        chat with a model of a running server
        echo "Name three colors" | tritonpy chat model.gguf    one question per line

    The response appears while the model writes it. Type /help for the commands of the chat.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the model, the address of a server, and the members of the requests."""
        parser.usage = "tritonpy chat [MODEL_FILE] [--url URL] [--option=value ...]"
        parser.add_argument("file", nargs="?", type=Path, help="a model file, such as model.gguf")
        parser.add_argument("--url", help="address of a server with OpenAI's API")
        parser.add_argument("--model", help="name of the model (default: the server's only one)")
        parser.add_argument(
            "--api-key",
            default=os.environ.get(_KEY_VARIABLE, ""),
            help=f"key of the server (default: the environment variable {_KEY_VARIABLE})",
        )
        parser.add_argument("--system", default="", metavar="TEXT", help="instructions for it")
        parser.add_argument("--temperature", type=float, help="0 always takes the likeliest token")
        parser.add_argument("--max-tokens", type=int, metavar="N", help="longest response")
        parser.add_argument("--seed", type=int, help="makes random choices repeatable")

    def run(self, arguments: argparse.Namespace) -> int:
        """Chat until the input ends. Raises StartupError if there is no model to chat with."""
        if (arguments.file is None) == (arguments.url is None):
            raise StartupError("give either a model file or --url")
        with ExitStack() as stack:
            client = _client(arguments, stack)
            model = _model(client, arguments.model)
            names = ("temperature", "max_tokens", "seed")
            members = {
                name: value for name in names if (value := getattr(arguments, name)) is not None
            }
            conversation = Conversation(
                client, model, members, _write, _note, system=arguments.system
            )
            return _chat(conversation, model)


def _client(arguments: argparse.Namespace, stack: ExitStack) -> ChatClient:
    if arguments.url is not None:
        return ChatClient(arguments.url, arguments.api_key)
    if not arguments.file.exists():
        raise StartupError(f"model '{arguments.file}' does not exist")
    _note(f"loading {arguments.file} ...")
    server = stack.enter_context(ChildServer(arguments.file))
    client = ChatClient(server.url)
    server.wait_until_ready(client)
    return client


def _model(client: ChatClient, wanted: str | None) -> str:
    """Return the model to chat with. Raises StartupError."""
    try:
        found = client.models()
    except (ChatFailed, OSError) as error:
        raise StartupError(f"cannot list the models of the server: {error}") from error
    if wanted is not None:
        if wanted not in found:
            listed = ", ".join(found) or "none"
            raise StartupError(f"the server has no model '{wanted}'; it has: {listed}")
        return wanted
    if len(found) != 1:
        listed = ", ".join(found) or "none"
        raise StartupError(f"choose a model with --model; the server has: {listed}")
    return found[0]


def _chat(conversation: Conversation, model: str) -> int:
    """Answer all lines of the input; return 1 if a question that was not typed failed."""
    is_typed = sys.stdin.isatty()
    if is_typed:
        with suppress(ImportError):
            import readline  # noqa: F401 - `input` then has a history and edits lines
        _note(f"{model} is ready. /help lists the commands, Ctrl-D ends the chat.")
    for line in _lines(is_typed=is_typed):
        try:
            if not conversation.handle(line):
                break
        except (ChatFailed, OSError) as error:
            _note(f"error: {error}")
            if not is_typed:
                return 1
    return 0


def _lines(*, is_typed: bool) -> Iterator[str]:
    """Yield the lines of the input. Ctrl-C at an empty prompt is a hint, not the end."""
    if not is_typed:
        yield from sys.stdin
        return
    while True:
        try:
            yield input("> ")
        except EOFError:
            _write("\n")
            return
        except KeyboardInterrupt:
            _write("\n")
            _note("Ctrl-D ends the chat.")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _note(text: str) -> None:
    """Write what is no response to standard error, dimmed in a terminal."""
    if sys.stderr.isatty():
        text = f"{_DIM}{text}{_PLAIN}"
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
