"""Smoke test of the "slo" and fair queueing benchmarks; their measurements here mean nothing."""

from __future__ import annotations

import re
import subprocess
import sys

from bench import fair_live, slo_live
from tests.conftest import ROOT


def test_a_short_run_prints_a_line_for_each_setting() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.slo_live",
        "--clients",
        "2",
        "--seconds",
        "0.4",
        "--rounds",
        "1",
    ]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * len(slo_live.SETTINGS), done.stderr
    end = r" [1-9]\d*/s +\d\.\d\d of no delay   p99 +\d+\.\d ms +\d\.\d rows a batch$"
    assert all(re.search(end, line) for line in lines), done.stdout


def test_a_short_run_of_two_tenants_prints_both_ratios() -> None:
    command = [sys.executable, "-m", "bench.fair_live", "--seconds", "0.4"]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(fair_live.SETTINGS), done.stderr
    assert all(
        re.search(r"while both wait +\d+\.\d\d   in all +\d+\.\d\d$", line) for line in lines
    ), done.stdout
