"""Smoke test of the sequence benchmark; its measurements here mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.sequences import cases
from bench.verdict import judge_combined
from tests.conftest import ROOT

TRITONSERVER = os.environ.get("TRITONPY_TRITONSERVER", "")
PERF_ANALYZER = os.environ.get("TRITONPY_PERF_ANALYZER", "")


def test_every_strategy_is_compared_at_one_instance_and_at_four() -> None:
    names = {case.name.split(", ")[0] + ", " + case.name.split(", ")[1] for case in cases(ROOT)}
    assert names == {
        f"{strategy}, {count} instances" for strategy in ("direct", "oldest") for count in (1, 4)
    }


@pytest.mark.skipif(
    not (TRITONSERVER and PERF_ANALYZER), reason="needs the real Triton and perf_analyzer"
)
def test_a_short_run_prints_its_row() -> None:
    name = "direct, 1 instances, gRPC stream, 16 sequences"
    command = [
        sys.executable,
        "-m",
        "bench.sequences",
        "--triton",
        TRITONSERVER,
        "--perf-analyzer",
        PERF_ANALYZER,
    ]
    command += ["--pairs", "1", "--seconds", "1", "--only", name]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=180
    )
    assert f"| {name} | Triton |" in done.stdout, done.stderr
    assert "1 rows together: " in done.stdout


def test_rows_are_judged_jointly_by_round() -> None:
    verdict = judge_combined([([2.0, 8.0], [1.0, 1.0]), ([1.0, 1.0], [2.0, 2.0])], 0.9)
    assert (verdict.ratio, verdict.low, verdict.high) == pytest.approx((1.5, 1.0, 2.0))
    assert verdict.word == "met"
