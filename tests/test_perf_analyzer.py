"""The real perf_analyzer, run against a server over both protocols."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PERF_ANALYZER = os.environ.get("TRITONPY_PERF_ANALYZER", "")


@pytest.mark.skipif(
    not PERF_ANALYZER,
    reason="set TRITONPY_PERF_ANALYZER to the real perf_analyzer; `bash tests/conformance/oracle.sh DIR` makes DIR/bin/perf_analyzer",
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_real_perf_analyzer_measures_a_model(server: Any, tmp_path: Path, protocol: str) -> None:
    report = tmp_path / "report.csv"
    done = subprocess.run(
        [
            PERF_ANALYZER, "-m", "add_sub", "-i", protocol, "-u", getattr(server, protocol), "-b", "2", "-f", str(report),
            "--concurrency-range=4", "--measurement-mode=count_windows", "--measurement-request-count=50", "--max-trials=5", "--stability-percentage=999",
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert "error" not in printed.lower(), printed
    with report.open(newline="") as file:
        measured = next(csv.DictReader(file))
    assert float(measured["Inferences/Second"]) > 0
    # what it reads from the server's statistics: they moved while it measured
    assert float(measured["Server Compute Infer"]) > 0
