"""Requirements of the package, which runs inside the interpreters of models."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tritonpy_ipc as ipc

PACKAGE = Path(ipc.__file__).parent
MODULES = sorted(PACKAGE.glob("*.py"))
OLDEST = (3, 9)
OUTSIDE = {"numpy", *sys.stdlib_module_names}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_each_module_is_python_of_the_oldest_interpreter(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=OLDEST)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_each_module_imports_only_the_standard_library_numpy_and_this_package(path: Path) -> None:
    foreign = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            foreign += [
                alias.name for alias in node.names if alias.name.partition(".")[0] not in OUTSIDE
            ]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            foreign += (
                [node.module]
                if node.module and node.module.partition(".")[0] not in OUTSIDE
                else []
            )
        elif isinstance(node, ast.ImportFrom):
            foreign += ["." * node.level] if node.level > 1 else []
    assert foreign == []


def test_the_package_has_no_folders_of_its_own() -> None:
    assert [
        each.name for each in PACKAGE.iterdir() if each.is_dir() and each.name != "__pycache__"
    ] == []
