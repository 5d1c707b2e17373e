from __future__ import annotations

import pytest

from tritonpy_types import TraceLevel

from .families import rule


def chosen(made, count, continues=False):
    return [made.sample(continues) for _ in range(count)]


def test_every_nth_request_is_traced():
    assert chosen(rule(rate=3), 7) == [False, False, True, False, False, True, False]


def test_a_count_is_used_up():
    made = rule(rate=2, count=2)
    assert sum(chosen(made, 20)) == 2
    assert made.count == 0


def test_a_count_of_none_traces_none():
    assert sum(chosen(rule(count=0), 5)) == 0


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"level": TraceLevel.OFF}, "tracing is disabled"),
        ({"rate": 0}, "sample rate must be non-zero"),
        ({"missing_setting": "trace file name is not given"}, "trace file name is not given"),
        ({"level": TraceLevel.OFF, "rate": 0, "missing_setting": "x"}, "tracing is disabled"),
    ],
)
def test_a_rule_that_cannot_trace_has_a_problem(fields, problem):
    made = rule(**fields)
    assert made.problem == problem
    assert not any(chosen(made, 3))


@pytest.mark.parametrize("fields", [{"rate": 0}, {"rate": 1000}, {"count": 0}])
def test_a_client_s_trace_is_continued_for_any_rate_and_count(fields):
    assert chosen(rule(**fields), 3, continues=True) == [True] * 3


def test_a_client_s_trace_is_not_continued_if_tracing_is_off():
    assert not any(chosen(rule(level=TraceLevel.OFF), 3, continues=True))


def test_a_rule_is_complete_when_all_requested_traces_are_taken():
    made = rule(rate=2, count=1)
    chosen(made, 4)
    assert not made.complete
    made.taken = 1
    assert made.complete
    unlimited = rule()
    unlimited.taken = 5
    assert not unlimited.complete
