from __future__ import annotations

import math

import pytest

from tritonpy_frontend_h2.watch import Times, Watch

NEVER = Times(handshake=math.inf, keepalive=math.inf)


class Watched:
    """A connection that notes what is asked of it."""

    def __init__(self):
        self.heard = 0.0
        self.greeted = True
        self.open = 0
        self.done = 0
        self.asked = []
        self.answer = None

    def begun(self):
        return self.greeted

    def calls(self):
        return self.open

    def activity(self):
        return self.done

    def ping(self, answered):
        self.asked.append("ping")
        self.answer = answered

    def retire(self, text):
        self.asked.append(f"retire {text}")

    def finish(self, text):
        self.asked.append(f"finish {text}")

    def fail(self, text):
        self.asked.append(f"fail {text}")

    def abort(self):
        self.asked.append("abort")


def pass_time(watch, until, now=0.0):
    """Look whenever it is wanted up to a time; return the times at which something was asked, with what."""
    seen, again = [], watch.look(now)
    while again <= until:
        before = len(watch._watched.asked)
        now, again = again, watch.look(again)
        seen += [(now, what) for what in watch._watched.asked[before:]]
    return seen


def watched(**times):
    connection = Watched()
    return connection, Watch(connection, NEVER._replace(**times), 0.0)


def test_a_connection_without_limits_is_never_looked_at():
    _, watch = watched()
    assert watch.look(0.0) == math.inf


@pytest.mark.parametrize(("greeted", "expected"), [(False, [(60.0, "abort")]), (True, [])])
def test_who_does_not_begin_is_let_go(greeted, expected):
    connection, watch = watched(handshake=60.0)
    connection.greeted = greeted
    assert pass_time(watch, 1000) == expected


def test_a_silent_client_with_calls_is_pinged_and_let_go_without_an_answer():
    connection, watch = watched(keepalive=100.0, keepalive_timeout=20.0)
    connection.open = 1
    assert pass_time(watch, 1000) == [(100.0, "ping"), (120.0, "fail ping_timeout")]


def test_a_client_that_answers_is_pinged_again():
    connection, watch = watched(keepalive=100.0, keepalive_timeout=20.0)
    connection.open = 1
    assert watch.look(100.0) == 120.0
    connection.heard = 101.0
    connection.answer()
    assert pass_time(watch, 202.0, 120.0) == [(201.0, "ping")]


def test_a_client_that_was_heard_is_not_pinged():
    connection, watch = watched(keepalive=100.0)
    connection.open, connection.heard = 1, 60.0
    assert pass_time(watch, 170) == [(160.0, "ping")]


def test_a_client_without_calls_is_pinged_where_that_is_wanted():
    assert pass_time(watched(keepalive=100.0)[1], 1000) == []
    wanted = watched(keepalive=100.0, without_calls=True)[1]
    assert pass_time(wanted, 110) == [(100.0, "ping")]


def test_pings_without_an_answer_in_between_become_rare():
    connection, watch = watched(keepalive=1.0, without_calls=True, pings=2)
    connection.ping = lambda answered: (connection.asked.append("ping"), answered())
    assert [at for at, _ in pass_time(watch, 125.0)] == [1.0, 2.0, 62.0, 122.0]
    connection.done += 1
    assert [at for at, _ in pass_time(watch, 184.0, 125.0)] == [182.0, 183.0]


def test_any_number_of_pings_may_be_allowed():
    connection, watch = watched(keepalive=1.0, without_calls=True, pings=0)
    connection.ping = lambda answered: (connection.asked.append("ping"), answered())
    assert len(pass_time(watch, 50.0)) == 50


def test_an_old_connection_is_retired_and_ended_after_its_grace():
    _, watch = watched(age=100.0, grace=50.0)
    (retired, first), (ended, second) = pass_time(watch, 1000)
    assert (first, second) == ("retire max_age", "abort")
    assert 90 <= retired <= 110
    assert ended == retired + 50


def test_without_a_grace_its_calls_have_all_the_time():
    assert [what for _, what in pass_time(watched(age=100.0)[1], 10_000)] == ["retire max_age"]


def test_a_connection_without_calls_ends():
    assert pass_time(watched(idle=100.0)[1], 1000) == [(100.0, "finish connection idle")]


def test_a_connection_with_calls_does_not():
    connection, watch = watched(idle=100.0)
    connection.open = 1
    assert pass_time(watch, 1000) == []
    connection.open = 0
    assert pass_time(watch, 2000, 1000) == [(1100.0, "finish connection idle")]


def test_a_call_since_the_last_look_makes_it_wait_longer():
    connection, watch = watched(idle=100.0)
    connection.done = 7
    assert pass_time(watch, 1000) == [(112.5, "finish connection idle")]


@pytest.mark.parametrize("pings", [0, 2])
def test_further_pings_do_not_put_off_the_end_of_who_is_silent(pings):
    _, watch = watched(keepalive=10.0, keepalive_timeout=25.0, without_calls=True, pings=pings)
    assert pass_time(watch, 1000) == [(10.0, "ping"), (35.0, "fail ping_timeout")]


def test_a_client_that_is_heard_has_longer_to_answer():
    connection, watch = watched(keepalive=100.0, keepalive_timeout=20.0, without_calls=True)
    assert watch.look(100.0) == 120.0
    connection.heard = 110.0
    assert pass_time(watch, 1000, 120.0) == [(130.0, "fail ping_timeout")]
    assert connection.asked == ["ping", "fail ping_timeout"]
