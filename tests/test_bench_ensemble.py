"""Smoke test of the ensemble benchmark; its measurements here mean nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench import models, processes
from bench.ensemble import GOAL, cases
from bench.rows import line, measure


def test_the_goal_applies_to_32_requests_in_flight_over_both_protocols() -> None:
    assert {case.name for case in cases() if case.goal == GOAL} == {
        f"{model}, 32 in flight, {load}"
        for model in ("chain", "batched_chain")
        for load in ("HTTP, wrk", "gRPC, h2load")
    }


def test_a_short_run_has_a_row(tmp_path: Path) -> None:
    for program in ("wrk", "h2load"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}, of Debian's packages wrk and nghttp2-client")
    models.write_ensembles(tmp_path)
    with processes.tritonpy(tmp_path) as server:
        for case in cases():
            if case.name.startswith("batched_chain, 8 "):
                assert "in flight" in line(measure(case, server, server, pairs=1, seconds=1))
