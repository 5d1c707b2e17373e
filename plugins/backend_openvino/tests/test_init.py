from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "script",
    [
        "import tritonpy_backend_openvino",
        "import tritonpy_backend_openvino.backend",
        "from tritonpy.cli import main; main(['plugins'])",
    ],
)
def test_openvino_is_imported_with_the_first_model(script):
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nassert 'openvino' not in sys.modules"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
