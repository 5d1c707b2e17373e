"""Server and client in one interpreter: whoever is imported first, neither disturbs the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "toys" / "ask_everything.py"


@pytest.mark.parametrize("first", ["client", "server"])
def test_both_protocols_work_whoever_is_imported_first(first: str, models) -> None:
    models.example("add_sub")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), first, str(models.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "asked everything" in done.stdout
