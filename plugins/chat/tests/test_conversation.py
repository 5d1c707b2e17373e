from __future__ import annotations

import pytest

from tritonpy_chat.client import ChatClient, ChatFailed
from tritonpy_chat.conversation import HELP, Conversation


class Terminal:
    def __init__(self, echo, **options):
        self.written, self.notes = "", []
        client = ChatClient(echo.url, "secret")
        self.chat = Conversation(
            client, "echo", {"seed": 1}, self.write, self.notes.append, **options
        )

    def write(self, text):
        self.written += text


def roles(body):
    return [(each["role"], each["content"]) for each in body["messages"]]


def test_a_response_is_written_as_it_arrives_with_its_figures(echo):
    terminal = Terminal(echo)
    assert terminal.chat.handle("good morning to you\n")
    assert terminal.written == "good morning to you \n"
    [figures] = terminal.notes
    assert figures.startswith("4 tokens, ")
    assert "first token after" in figures
    [body] = echo.bodies
    assert body["seed"] == 1
    assert echo.headers[0]["authorization"] == "Bearer secret"


def test_the_conversation_is_the_context_of_the_next_question(echo):
    terminal = Terminal(echo, system="be brief")
    terminal.chat.handle("one")
    terminal.chat.handle("two")
    assert roles(echo.bodies[-1]) == [
        ("system", "be brief"),
        ("user", "one"),
        ("assistant", "one "),
        ("user", "two"),
    ]
    terminal.chat.handle("/retry")
    assert roles(echo.bodies[-1]) == roles(echo.bodies[-2])
    terminal.chat.handle("/clear")
    terminal.chat.handle("three")
    assert roles(echo.bodies[-1]) == [("system", "be brief"), ("user", "three")]
    terminal.chat.handle("/system be long")
    terminal.chat.handle("four")
    assert roles(echo.bodies[-1]) == [("system", "be long"), ("user", "four")]


def test_commands(echo):
    terminal = Terminal(echo)
    assert terminal.chat.handle("   \n")
    assert terminal.chat.handle("/help")
    assert terminal.chat.handle("/sing")
    assert terminal.chat.handle("/retry")
    assert terminal.notes == [
        HELP,
        f"There is no command /sing.\n{HELP}",
        "There is no question yet.",
    ]
    assert not terminal.chat.handle("/exit")
    assert not echo.bodies


@pytest.mark.parametrize(("text", "message"), [("fail", "no such luck"), ("a broken", "broke")])
def test_a_failed_question_is_not_part_of_the_conversation(echo, text, message):
    terminal = Terminal(echo)
    with pytest.raises(ChatFailed, match=message):
        terminal.chat.handle(text)
    terminal.chat.handle("next")
    assert roles(echo.bodies[-1]) == [("user", "next")]


def test_an_interrupted_response_is_cancelled_and_kept(echo):
    terminal = Terminal(echo)

    def interrupt(text):
        terminal.write(text)
        if text and terminal.written.endswith("forever forever forever "):
            raise KeyboardInterrupt

    terminal.chat = Conversation(ChatClient(echo.url), "echo", {}, interrupt, terminal.notes.append)
    assert terminal.chat.handle("forever")
    assert terminal.notes == ["stopped"]
    assert echo.ended_early.wait(20)
    terminal.chat.handle("next")
    assert roles(echo.bodies[-1])[1] == ("assistant", "forever forever forever ")
