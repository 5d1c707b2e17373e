"""The command-line comparison and the interviewer, with servers that are played."""

from __future__ import annotations

import contextlib

import pytest

from tests.conformance import compare, interviewer
from tests.conformance.exchange import Exchange, get, topic
from tests.conformance.intended import Intended
from tests.conformance.interviewer import Interviewer, ServerDied

EXCHANGES = tuple(Exchange(name, (get("/v2"),)) for name in ("same", "other", "broken"))
TOPIC = topic("played", "", EXCHANGES)


class Played:
    """An interviewer whose answers are told beforehand; an exception is raised."""

    def __init__(self, **answers):
        self._answers = answers

    def answers(self, _topic, exchange):
        answer = self._answers[exchange.name]
        if isinstance(answer, Exception):
            raise answer
        return {"0": {"status": answer}}


TRITON = Played(same=200, other=200, broken=200)


def compared(monkeypatch, tritonpy, names, listed=()):
    monkeypatch.setattr(compare.intended, "read", lambda: list(listed))
    return compare.compare(TRITON, tritonpy, [(TOPIC, exchange) for exchange in EXCHANGES if exchange.name in names])


def test_equal_servers_pass(monkeypatch, capsys):
    assert compared(monkeypatch, TRITON, ("same", "other")) == 0
    assert "2 exchanges: 2 equal" in capsys.readouterr().out


def test_a_difference_fails_and_is_shown(monkeypatch, capsys):
    assert compared(monkeypatch, Played(same=200, other=404), ("same", "other")) == 1
    out = capsys.readouterr().out
    assert "NOT EQUAL  played/other\n    0/status\n        triton:   200\n        tritonpy: 404\n" in out
    assert "2 exchanges: 1 NOT EQUAL, 1 equal" in out


def test_a_listed_difference_passes_and_a_vanished_one_fails(monkeypatch):
    listed = [Intended("played/other", "0/status", "because")]
    assert compared(monkeypatch, Played(same=200, other=404), ("same", "other"), listed) == 0
    assert compared(monkeypatch, TRITON, ("same", "other"), listed) == 1


def test_a_server_that_cannot_be_asked_fails_and_the_next_exchange_is_taken(monkeypatch, capsys):
    assert compared(monkeypatch, Played(same=200, broken=ServerDied("it ended")), ("broken", "same")) == 1
    assert "FAILED     played/broken\n    ServerDied: it ended" in capsys.readouterr().out


class FakeServer:
    """A server that is alive as often as told."""

    def __init__(self, lives):
        self.lives = lives
        self.ended = False

    def alive(self):
        return next(self.lives)

    def log_size(self):
        return 0

    def forget_meetings(self):
        pass


@contextlib.contextmanager
def started(server):
    yield server
    server.ended = True


def asking(monkeypatch, lives, restarts):
    monkeypatch.setattr(interviewer, "take", lambda server, step, start: "answer")
    lives, servers = iter(lives), []

    def start(flags):
        servers.append(FakeServer(lives))
        servers[-1].flags = flags
        return started(servers[-1])

    return Interviewer(start, restarts), servers


def test_a_server_that_dies_is_started_again_and_asked_again(monkeypatch):
    asked, servers = asking(monkeypatch, [False, True], restarts=1)
    with asked:
        assert asked.answers(TOPIC, EXCHANGES[0]) == {"0": "answer"}
    assert [server.ended for server in servers] == [True, True]


def test_a_server_that_dies_once_too_often_is_an_error(monkeypatch):
    asked, _ = asking(monkeypatch, [False, False], restarts=0)
    with asked, pytest.raises(ServerDied, match="same"):
        asked.answers(TOPIC, EXCHANGES[0])


def test_a_topic_with_flags_has_a_server_of_its_own(monkeypatch):
    asked, servers = asking(monkeypatch, [True, True, True], restarts=0)
    other = topic("flagged", "", EXCHANGES, ("--log-verbose=1",))
    with asked:
        for one in (TOPIC, other, other):
            asked.answers(one, EXCHANGES[0])
        assert [server.ended for server in servers] == [True, False]
    assert [server.flags for server in servers] == [(), ("--log-verbose=1",)]
