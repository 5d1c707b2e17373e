from __future__ import annotations

import subprocess
import sys

CODE = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
from tritonpy.cli.open_files import allow_many_open_files
allow_many_open_files()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
allow_many_open_files()
"""


def test_the_soft_limit_becomes_the_hard_one():
    subprocess.run([sys.executable, "-c", CODE], check=True)
