"""Programs of npm packages, installed once into a folder next to the test environment."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("azurite@3.37.0", "s3rver@3.7.1")
FOLDER = Path(sys.prefix) / "npm"


def program(name: str) -> str:
    """Return the path of a program of `PACKAGES`, installing them if needed.

    Skips the test if npm is not installed.
    """
    if shutil.which("npm") is None:
        pytest.skip(f"needs npm, for {name}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    installed = FOLDER / "installed"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (installed.is_file() and installed.read_text() == repr(PACKAGES)):
            subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES],
                cwd=FOLDER,
                check=True,
            )
            installed.write_text(repr(PACKAGES))
    return str(FOLDER / "node_modules" / ".bin" / name)
