from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import msgspec
import pytest

from tritonpy.errors import QueueFull
from tritonpy.ipc import Endpoint, Frame, Kind, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.verbs import Respondent, Verbs

LOG = logging.getLogger("tritonpy.model")


class Said(msgspec.Struct):
    """What the verbs of these tests take."""

    value: int


async def later(said: Said) -> int:
    await asyncio.sleep(0)
    return said.value + 1


async def failing(_said: Said) -> None:
    raise ValueError("secret")


def refusing(_said: Said) -> None:
    raise QueueFull("no room")


VERBS: Verbs = {
    "now": (Said, lambda said: 2 * said.value),
    "later": (Said, later),
    "refusing": (Said, refusing),
    "failing": (Said, failing),
}


def talk(act: Callable[[Respondent, Callable[[int, str], Frame]], Awaitable[None]]) -> list[dict[str, Any]]:
    """Return what is replied while `act` runs, which gets the respondent and what makes the frame of a question."""
    replies: list[dict[str, Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with closing(theirs):
            connection = Connection(loop, ours, lambda frame: None, lambda reason: None)
            await act(Respondent(loop, connection, VERBS, LOG), _question)
            connection.close()
            theirs.setblocking(False)
            end = Endpoint()
            while data := theirs.recv(1 << 16):
                replies.extend({"number": frame.words[0], **frame.extras} for frame in end.feed(data))

    asyncio.run(scenario())
    return replies


def _question(number: int, verb: str, value: object = 3) -> Frame:
    data, _ = Endpoint().compose(Kind.ASK, [number], extras={"verb": verb, "arguments": {"value": value}})
    (frame,) = Endpoint().feed(data)
    return frame


def test_verbs_are_answered_now_or_later_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def act(respondent: Respondent, question: Callable[[int, str], Frame]) -> None:
        for number, verb in enumerate(VERBS, 1):
            respondent.asked(question(number, verb))
        while respondent._tasks:
            await asyncio.wait(set(respondent._tasks))

    replies = {reply["number"]: reply for reply in talk(act)}
    assert replies[1]["value"] == 6
    assert replies[2]["value"] == 4
    assert replies[3]["error"] == [4, "no room", "QueueFull"]
    assert "secret" not in replies[4]["error"][1]
    assert "secret" in caplog.text


def test_what_is_told_is_not_answered_and_what_goes_wrong_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def act(respondent: Respondent, question: Callable[[int, str], Frame]) -> None:
        respondent.told(question(1, "now"))
        respondent.told(question(2, "refusing"))

    assert talk(act) == []
    assert "'refusing' failed: no room" in caplog.text


def test_nonsense_is_a_broken_protocol() -> None:
    async def act(respondent: Respondent, question: Callable[..., Frame]) -> None:
        with pytest.raises(ProtocolError, match="no verb 'nothing'"):
            respondent.asked(question(1, "nothing"))
        with pytest.raises(ProtocolError, match="should not"):
            respondent.told(question(2, "now", "x"))
        respondent.asked(question(3, "later"))
        with pytest.raises(ProtocolError, match="asked again"):
            respondent.asked(question(3, "later"))
        respondent.close()

    talk(act)
