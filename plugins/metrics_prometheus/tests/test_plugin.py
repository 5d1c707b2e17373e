from __future__ import annotations

import subprocess
import sys


def test_discovery_loads_neither_uvicorn_nor_prometheus_client():
    code = (
        "import sys, tritonpy_metrics_prometheus\n"
        "print([name for name in ('uvicorn', 'prometheus_client') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
