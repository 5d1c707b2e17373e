from __future__ import annotations

import math

import pytest

from tritonpy_http2.timeouts import ConnectionTimeouts, TimeoutSettings

NEVER = TimeoutSettings(handshake=math.inf, keepalive=math.inf)


class FakeConnection:
    """A connection that records actions."""

    def __init__(self):
        self.last_received = 0.0
        self.is_greeted = True
        self.open = 0
        self.done = 0
        self.actions = []
        self.acknowledge = None

    def is_started(self):
        return self.is_greeted

    def calls(self):
        return self.open

    def activity(self):
        return self.done

    def ping(self, on_ack):
        self.actions.append("ping")
        self.acknowledge = on_ack

    def start_draining(self, text):
        self.actions.append(f"drain {text}")

    def finish(self, text):
        self.actions.append(f"finish {text}")

    def fail(self, text):
        self.actions.append(f"fail {text}")

    def abort(self):
        self.actions.append("abort")


def run_until(timeouts, until, now=0.0):
    """Run the checks when due until a time; return times and actions."""
    seen, next_check = [], timeouts.check(now)
    while next_check <= until:
        before = len(timeouts._connection.actions)
        now, next_check = next_check, timeouts.check(next_check)
        seen += [(now, action) for action in timeouts._connection.actions[before:]]
    return seen


def make_timeouts(**timeout_settings):
    connection = FakeConnection()
    return connection, ConnectionTimeouts(connection, NEVER._replace(**timeout_settings), 0.0)


def test_without_timeouts_there_are_no_checks():
    _, timeouts = make_timeouts()
    assert timeouts.check(0.0) == math.inf


@pytest.mark.parametrize(("is_greeted", "expected"), [(False, [(60.0, "abort")]), (True, [])])
def test_a_connection_without_handshake_is_aborted(is_greeted, expected):
    connection, timeouts = make_timeouts(handshake=60.0)
    connection.is_greeted = is_greeted
    assert run_until(timeouts, 1000) == expected


def test_a_silent_client_with_calls_is_pinged_and_disconnected():
    connection, timeouts = make_timeouts(keepalive=100.0, keepalive_timeout=20.0)
    connection.open = 1
    assert run_until(timeouts, 1000) == [(100.0, "ping"), (120.0, "fail ping_timeout")]


def test_a_client_that_acknowledges_is_pinged_again():
    connection, timeouts = make_timeouts(keepalive=100.0, keepalive_timeout=20.0)
    connection.open = 1
    assert timeouts.check(100.0) == 120.0
    connection.last_received = 101.0
    connection.acknowledge()
    assert run_until(timeouts, 202.0, 120.0) == [(201.0, "ping")]


def test_an_active_client_is_not_pinged():
    connection, timeouts = make_timeouts(keepalive=100.0)
    connection.open, connection.last_received = 1, 60.0
    assert run_until(timeouts, 170) == [(160.0, "ping")]


def test_a_client_without_calls_is_pinged_only_if_permitted():
    assert run_until(make_timeouts(keepalive=100.0)[1], 1000) == []
    timeouts = make_timeouts(keepalive=100.0, without_calls=True)[1]
    assert run_until(timeouts, 110) == [(100.0, "ping")]


def test_pings_without_response_data_slow_down():
    connection, timeouts = make_timeouts(keepalive=1.0, without_calls=True, pings=2)
    connection.ping = lambda on_ack: (connection.actions.append("ping"), on_ack())
    assert [at for at, _ in run_until(timeouts, 125.0)] == [1.0, 2.0, 62.0, 122.0]
    connection.done += 1
    assert [at for at, _ in run_until(timeouts, 184.0, 125.0)] == [182.0, 183.0]


def test_the_number_of_pings_may_be_unlimited():
    connection, timeouts = make_timeouts(keepalive=1.0, without_calls=True, pings=0)
    connection.ping = lambda on_ack: (connection.actions.append("ping"), on_ack())
    assert len(run_until(timeouts, 50.0)) == 50


def test_an_old_connection_is_drained_and_aborted_after_its_grace():
    _, timeouts = make_timeouts(age=100.0, grace=50.0)
    (retired, first), (ended, second) = run_until(timeouts, 1000)
    assert (first, second) == ("drain max_age", "abort")
    assert 90 <= retired <= 110
    assert ended == retired + 50


def test_without_a_grace_period_calls_have_no_limit():
    assert [action for _, action in run_until(make_timeouts(age=100.0)[1], 10_000)] == [
        "drain max_age"
    ]


def test_an_idle_connection_is_closed():
    assert run_until(make_timeouts(idle=100.0)[1], 1000) == [(100.0, "finish connection idle")]


def test_a_connection_with_calls_is_not_idle():
    connection, timeouts = make_timeouts(idle=100.0)
    connection.open = 1
    assert run_until(timeouts, 1000) == []
    connection.open = 0
    assert run_until(timeouts, 2000, 1000) == [(1100.0, "finish connection idle")]


def test_a_call_since_the_last_check_restarts_the_idle_period():
    connection, timeouts = make_timeouts(idle=100.0)
    connection.done = 7
    assert run_until(timeouts, 1000) == [(112.5, "finish connection idle")]


@pytest.mark.parametrize("pings", [0, 2])
def test_further_pings_do_not_extend_the_ping_timeout(pings):
    _, timeouts = make_timeouts(
        keepalive=10.0, keepalive_timeout=25.0, without_calls=True, pings=pings
    )
    assert run_until(timeouts, 1000) == [(10.0, "ping"), (35.0, "fail ping_timeout")]


def test_received_data_extends_the_ping_timeout():
    connection, timeouts = make_timeouts(
        keepalive=100.0, keepalive_timeout=20.0, without_calls=True
    )
    assert timeouts.check(100.0) == 120.0
    connection.last_received = 110.0
    assert run_until(timeouts, 1000, 120.0) == [(130.0, "fail ping_timeout")]
    assert connection.actions == ["ping", "fail ping_timeout"]
