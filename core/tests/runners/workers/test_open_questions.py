from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tritonpy.errors import Unavailable
from tritonpy.ipc import Kind, ProtocolError
from tritonpy.runners.workers.open_questions import OpenQuestions


class Line:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, kind, words, extras):
        self.sent.append((kind, words, extras))


def reply(number, said):
    return SimpleNamespace(words=[number], extras={"said": said})


def on_a_loop(play):
    """Run `play(questions, line)`, where a reply's `said` is what it says."""

    async def run():
        line = Line()
        questions = OpenQuestions(asyncio.get_running_loop(), line, lambda frame: frame.extras["said"])
        await play(questions, line)

    asyncio.run(run())


async def asking(questions, verb="look"):
    asked = asyncio.create_task(questions.ask(verb, {"at": 1}))
    await asyncio.sleep(0)
    return asked


def test_each_gets_its_own_answer():
    async def play(questions, line):
        first, second = await asking(questions, "one"), await asking(questions, "two")
        assert [(kind, extras["verb"]) for kind, _, extras in line.sent] == [(Kind.ASK, "one"), (Kind.ASK, "two")]
        questions.replied(reply(2, "b"))
        questions.replied(reply(1, "a"))
        assert (await first, await second) == ("a", "b")

    on_a_loop(play)


def test_an_error_is_raised_where_it_was_asked():
    async def play(questions, _line):
        asked = await asking(questions)
        questions.replied(reply(1, Unavailable("not now")))
        with pytest.raises(Unavailable, match="not now"):
            await asked

    on_a_loop(play)


def test_a_reply_that_nobody_waits_for_is_no_protocol():
    async def play(questions, _line):
        asked = await asking(questions)
        questions.replied(reply(1, None))
        assert await asked is None
        for number in (1, 2):
            with pytest.raises(ProtocolError, match=f"question {number}, which is not open"):
                questions.replied(reply(number, None))

    on_a_loop(play)


def test_a_reply_to_somebody_who_has_gone_is_dropped():
    async def play(questions, _line):
        asked = await asking(questions)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        questions.replied(reply(1, "late"))

    on_a_loop(play)


@pytest.mark.parametrize("said", [None, Unavailable("it died")])
def test_at_the_end_all_hear_what_it_was(said):
    async def play(questions, _line):
        tasks = [await asking(questions) for _ in range(2)]
        questions.close(said)
        assert await asyncio.gather(*tasks, return_exceptions=True) == [said, said]

    on_a_loop(play)
