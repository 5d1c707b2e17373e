"""Server and client in one interpreter: whoever is imported first, neither disturbs the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client_surface.checks import METHODS, write_models
from tests.conftest import Models, tensors_text

SCRIPT = Path(__file__).parent / "toys" / "ask_everything.py"


@pytest.mark.parametrize("first", ["client", "server"])
def test_every_method_of_every_client_works_whoever_is_imported_first(first: str, models: Models, toys: Path) -> None:
    write_models(models, tensors_text)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), first, str(models.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(toys), str(SCRIPT.parents[2])))},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"asked {len(METHODS)} methods" in done.stdout
