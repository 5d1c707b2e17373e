"""Smoke test of the backend benchmark; its measurements here mean nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from bench.direct import OPENERS
from bench.framework_work import SUBJECTS
from tests.conftest import ROOT

NAME = "onnxruntime, digits onnx"


def test_every_backend_has_cases_and_is_compared_with_its_framework() -> None:
    assert {subject.framework for subject in SUBJECTS} == set(OPENERS)
    assert set(OPENERS) == {"onnxruntime", "pytorch", "tensorflow", "openvino", "transformer"}


def test_a_short_run_prints_its_rows() -> None:
    if shutil.which("wrk") is None:
        pytest.skip("needs wrk, of Debian's package of that name")
    command = [
        sys.executable,
        "-m",
        "bench.frameworks",
        "--pairs",
        "1",
        "--seconds",
        "1",
        "--only",
        NAME,
    ]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    rows = [line for line in done.stdout.splitlines() if line.startswith(f"| {NAME}")]
    assert len(rows) == 5, done.stderr
