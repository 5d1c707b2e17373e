"""Smoke test of the response cache benchmark; its measurements here mean nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from bench.cache import MISSES, SIZES, cases, costs
from tests.conftest import ROOT


def test_costs_are_printed_for_every_size() -> None:
    _head, _rule, *lines = costs(rounds=2)
    assert [line.split("|")[1].strip() for line in lines] == list(SIZES)


def test_hits_are_compared_with_misses_and_with_triton() -> None:
    assert {case.other for case in cases()} == {MISSES, "Triton"}


def test_a_short_run_prints_its_row() -> None:
    if shutil.which("wrk") is None:
        pytest.skip("needs wrk, of Debian's package of that name")
    command = [
        sys.executable,
        "-m",
        "bench.cache",
        "--pairs",
        "1",
        "--seconds",
        "1",
        "--only",
        "hits, 8 in flight",
    ]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert f"| hits, 8 in flight, wrk | {MISSES} |" in done.stdout, done.stderr
