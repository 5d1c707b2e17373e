"""The command-line comparison and the exchange runner, with fake servers."""

from __future__ import annotations

import contextlib

import pytest

from tests.conformance import compare, exchange_runner
from tests.conformance.exchange import Exchange, get, topic
from tests.conformance.exchange_runner import ExchangeRunner, ServerDied
from tests.conformance.intended_differences import IntendedDifference

EXCHANGES = tuple(Exchange(name, (get("/v2"),)) for name in ("same", "other", "broken"))
TOPIC = topic("played", "", EXCHANGES)


class FakeExchangeRunner:
    """A runner with predefined responses; exceptions are raised."""

    def __init__(self, **run):
        self._answers = run

    def run(self, _topic, exchange):
        response = self._answers[exchange.name]
        if isinstance(response, Exception):
            raise response
        return {"0": {"status": response}}


TRITON = FakeExchangeRunner(same=200, other=200, broken=200)


def exit_status(monkeypatch, tritonpy, names, listed=()):
    monkeypatch.setattr(compare.intended_differences, "read", lambda: list(listed))
    return compare.compare(
        TRITON, tritonpy, [(TOPIC, exchange) for exchange in EXCHANGES if exchange.name in names]
    )


def test_equal_servers_pass(monkeypatch, capsys):
    assert exit_status(monkeypatch, TRITON, ("same", "other")) == 0
    assert "2 exchanges: 2 equal" in capsys.readouterr().out


def test_a_difference_fails_and_is_printed(monkeypatch, capsys):
    assert exit_status(monkeypatch, FakeExchangeRunner(same=200, other=404), ("same", "other")) == 1
    out = capsys.readouterr().out
    assert (
        "NOT EQUAL  played/other\n    0/status\n        triton:   200\n        tritonpy: 404\n"
        in out
    )
    assert "2 exchanges: 1 NOT EQUAL, 1 equal" in out


def test_a_listed_difference_passes_and_a_missing_one_fails(monkeypatch):
    listed = [IntendedDifference("played/other", "0/status", "because")]
    assert (
        exit_status(monkeypatch, FakeExchangeRunner(same=200, other=404), ("same", "other"), listed)
        == 0
    )
    assert exit_status(monkeypatch, TRITON, ("same", "other"), listed) == 1


def test_a_failing_exchange_fails_the_run_and_the_next_one_still_runs(monkeypatch, capsys):
    assert (
        exit_status(
            monkeypatch,
            FakeExchangeRunner(same=200, broken=ServerDied("it ended")),
            ("broken", "same"),
        )
        == 1
    )
    assert "FAILED     played/broken\n    ServerDied: it ended" in capsys.readouterr().out


class FakeServer:
    """A server whose `alive` returns the given values."""

    def __init__(self, lives):
        self.lives = lives
        self.ended = False

    def alive(self):
        return next(self.lives)

    def log_size(self):
        return 0

    def clear_meetings(self):
        pass


@contextlib.contextmanager
def started(server):
    yield server
    server.ended = True


def fake_runner(monkeypatch, lives, restarts):
    monkeypatch.setattr(exchange_runner, "take", lambda server, step, start: "answer")
    lives, servers = iter(lives), []

    def start(flags):
        servers.append(FakeServer(lives))
        servers[-1].flags = flags
        return started(servers[-1])

    return ExchangeRunner(start, restarts), servers


def test_a_server_that_dies_is_restarted_and_the_exchange_repeated(monkeypatch):
    runner, servers = fake_runner(monkeypatch, [False, True], restarts=1)
    with runner:
        assert runner.run(TOPIC, EXCHANGES[0]) == {"0": "answer"}
    assert [server.ended for server in servers] == [True, True]


def test_a_server_that_dies_more_often_than_the_restart_limit_is_an_error(monkeypatch):
    runner, _ = fake_runner(monkeypatch, [False, False], restarts=0)
    with runner, pytest.raises(ServerDied, match="same"):
        runner.run(TOPIC, EXCHANGES[0])


def test_a_topic_with_flags_has_a_server_of_its_own(monkeypatch):
    runner, servers = fake_runner(monkeypatch, [True, True, True], restarts=0)
    other = topic("flagged", "", EXCHANGES, ("--log-verbose=1",))
    with runner:
        for one in (TOPIC, other, other):
            runner.run(one, EXCHANGES[0])
        assert [server.ended for server in servers] == [True, False]
    assert [server.flags for server in servers] == [(), ("--log-verbose=1",)]
