from __future__ import annotations

import pytest

from tritonpy_bench.report.text import level_lines
from tritonpy_bench.report.wording import duration, rate, verdict

from .results import level


def text(decoupled=False, **more):
    return "\n".join(level_lines(level(**more), decoupled))


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [
        (0, "0.00 us"),
        (1.234, "1.23 us"),
        (45.67, "45.7 us"),
        (999.4, "999 us"),
        (1500, "1.50 ms"),
        (2.5e6, "2.50 s"),
    ],
)
def test_durations_have_three_digits(microseconds, expected):
    assert duration(microseconds) == expected


def test_rates_are_short():
    assert [rate(value) for value in (0.5, 12.34, 12345.6)] == ["0.50", "12.3", "12,346"]


def test_the_text_of_a_closed_loop_has_its_figures():
    printed = text()
    assert printed.startswith("concurrency 1: stable (3 windows, 1.5 s)\n")
    assert "1,234 requests/s, 2,469 inferences/s (3 requests)" in printed
    assert "p50 200 us" in printed
    assert "queue 5.00 us" in printed
    assert "(batch size x executions: 1 x 2, 4 x 3)" in printed
    assert "12.3 us of CPU time per request; busiest process: 25% of a core" in printed
    assert "generator late" not in printed
    assert "FAILED" not in printed


def test_the_text_of_an_open_loop_has_its_own_lateness():
    printed = text(mode="request_rate", value=200.0)
    assert printed.startswith("200 requests/s: ")
    assert "generator late" in printed
    assert "service time" in printed


def test_every_error_is_reported():
    printed = text(
        failed=5,
        errors={"no room": 4, "gone": 1},
        complaints=("the client was the bottleneck",),
        stable=False,
    )
    assert "not stable in 3 windows" in printed
    assert "FAILED       5 requests\n    4 x no room\n    1 x gone" in printed
    assert "WARNING      the client was the bottleneck" in printed


def test_verdicts():
    assert verdict(level()) == "stable"
    assert verdict(level(interrupted=True)) == "interrupted"
    assert verdict(level(counted=True, stable=False)) == "fixed number of requests"
    assert verdict(level(stable=False, windows=1)) == "not stable in 1 window"
    assert verdict(level(requests=0, failed=2)) == "every request failed"
    assert verdict(level(requests=0)) == "no request finished"


def test_the_text_counts_the_responses_of_streams():
    assert "responses" not in text()
    assert "2.00 per request" in text(decoupled=True, responses=6)
