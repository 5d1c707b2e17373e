from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from tritonpy.ipc import Kind
from tritonpy.ipc.questions import Questions

from .far_end import PATIENCE_S, Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_each_question_gets_its_own_reply(server: Server) -> None:
    questions = Questions(server.channel)
    replies: dict[int, Any] = {}
    threads = [
        Thread(target=lambda number=number: replies.update({number: questions.ask("double", {"of": number}).extras}))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    asked = [server.next() for _ in threads]
    assert {frame.extras["verb"] for frame in asked} == {"double"}
    for frame in reversed(asked):
        server.send(Kind.REPLY, frame.words[:1], extras={"value": 2 * frame.extras["arguments"]["of"]})
    for thread in threads:
        thread.join(PATIENCE_S)
    assert replies == {number: {"value": 2 * number} for number in range(8)}


def test_a_reply_that_nobody_waits_for_harms_nobody(server: Server) -> None:
    questions = Questions(server.channel)
    server.send(Kind.REPLY, (99,), extras={"value": 1})
    server.channel.drain()
    thread = Thread(target=lambda: questions.ask("anything", {}))
    thread.start()
    server.send(Kind.REPLY, server.next().words, extras={"value": 1})
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
