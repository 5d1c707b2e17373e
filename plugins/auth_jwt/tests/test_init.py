from __future__ import annotations

import subprocess
import sys


def test_discovery_loads_no_cryptography():
    script = "import sys, tritonpy_auth_jwt; print([n for n in ('jwt', 'cryptography') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
