from __future__ import annotations

import subprocess
import sys


def test_discovery_loads_no_authenticator():
    script = "import sys, tritonpy_auth_api_keys; print([n for n in sys.modules if n.startswith('tritonpy_auth_api_keys.')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
