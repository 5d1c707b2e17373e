"""Interpreters other than the one that runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def python(version: str) -> Path:
    """Return an interpreter of that version from the PATH or pyenv.

    Skip the test if there is none.
    """
    folders = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += [found / "bin" for found in sorted(pyenv.glob(f"versions/{version}.*"))]
    for folder in folders:
        path = folder / f"python{version}"
        if path.exists() and _runs(path, version):
            return path
    pytest.skip(f"needs Python {version}")


def make_venv(folder: Path, interpreter: Path | str) -> Path:
    """Create an empty virtual environment and return its package folder."""
    subprocess.run([interpreter, "-m", "venv", "--without-pip", folder], check=True)
    return next(folder.glob("lib/python*/site-packages"))


def _runs(path: Path, version: str) -> bool:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return (
        subprocess.run(
            [path, "-c", code], capture_output=True, text=True, check=False
        ).stdout.strip()
        == version
    )
