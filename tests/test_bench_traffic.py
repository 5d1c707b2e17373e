"""Smoke test of the route benchmark, and tests of its exact simulation."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from bench.canary_simulation import simulate
from bench.traffic import GOAL, cases, costs
from tests.conftest import ROOT


def test_costs_are_printed_for_every_kind_of_route() -> None:
    _head, _rule, *lines = costs(rounds=5)
    assert [line.split("|")[1].strip() for line in lines][:2] == ["no route", "one target"]
    assert len(lines) == 6


def test_every_row_of_a_shadow_has_its_goal_and_both_protocols() -> None:
    copied = [case for case in cases() if "copied" in case.name]
    assert {case.goal for case in copied} == {GOAL}
    assert (
        sum("HTTP" in case.name for case in copied)
        == sum("gRPC" in case.name for case in copied)
        == 4
    )


def test_a_short_run_prints_its_row() -> None:
    if shutil.which("wrk") is None:
        pytest.skip("needs wrk, of Debian's package of that name")
    command = [
        sys.executable,
        "-m",
        "bench.traffic",
        "--pairs",
        "1",
        "--seconds",
        "1",
        "--only",
        "tiny, all requests copied, HTTP",
    ]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert "| tiny, all requests copied, HTTP p50 | route |" in done.stdout, done.stderr
    assert "| 100.0% | 1 % | 0 of 10 |" in done.stdout


@pytest.mark.parametrize("limit", [0.005, 0.02, 0.1])
@pytest.mark.parametrize("error_rate", [0.1, 1.0])
def test_a_simulated_canary_that_goes_bad_is_rolled_back_under_its_limit(
    limit: float, error_rate: float
) -> None:
    for seed in range(3):
        seen = simulate(limit, error_rate, seed)
        assert not seen.promoted
        assert max(seen.failed_share) <= limit
        assert seen.failures > 0


def test_a_simulated_good_canary_is_promoted() -> None:
    assert all(simulate(0.01, 0.001, seed).promoted for seed in range(3))
