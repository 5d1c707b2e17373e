"""The worker folder: it needs only the standard library and numpy, in any supported Python."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tritonpy_backend_python.worker_folder import WORKER_FOLDER

OLDEST = (3, 9)
OWN = {path.stem for path in WORKER_FOLDER.iterdir()}
ALLOWED = {"numpy", *sys.stdlib_module_names, *OWN}
MODULES = [
    *sorted(WORKER_FOLDER.rglob("*.py")),
    *sorted((WORKER_FOLDER / "tritonpy_worker" / "ipc").glob("*.py")),
]


def imported(path: Path) -> set[str]:
    """Return the top-level names of a module's imports, with dots for those out of the folder."""
    depth = len(path.relative_to(WORKER_FOLDER).parts) - 1
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), feature_version=OLDEST)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level > depth:
            found.add("." * node.level)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(WORKER_FOLDER)))
def test_each_module_supports_old_python_and_needs_no_packages(path: Path) -> None:
    assert imported(path) - ALLOWED == set()


def test_the_protocol_of_the_server_is_part_of_the_folder() -> None:
    assert WORKER_FOLDER / "tritonpy_worker" / "ipc" / "endpoint.py" in MODULES
