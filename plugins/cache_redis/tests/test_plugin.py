from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import tritonpy_cache_redis as plugin


def test_the_entry_point_names_the_module():
    (found,) = entry_points(group="tritonpy", name="cache-redis")
    assert found.load() is plugin


def test_discovery_does_not_load_the_client():
    script = "import sys, tritonpy_cache_redis; print('redis' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
