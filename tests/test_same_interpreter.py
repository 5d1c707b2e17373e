"""Server and client in one interpreter, imported in either order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client_surface.checks import METHODS, write_models
from tests.conftest import Models, tensors_text

SCRIPT = Path(__file__).parent / "toys" / "call_every_method.py"


@pytest.mark.parametrize("first", ["client", "server"])
def test_every_client_method_works_in_either_import_order(
    first: str, models: Models, toys: Path
) -> None:
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
    assert f"called {len(METHODS)} methods" in done.stdout
