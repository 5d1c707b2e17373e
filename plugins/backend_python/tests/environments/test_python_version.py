from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_python.environments.python_version import named_interpreter

from .conftest import write_program
from .pythons import python

OWN = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture(autouse=True)
def _no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    (tmp_path / "first").mkdir()


@pytest.mark.parametrize("version", [OWN, OWN.rpartition(".")[0]])
def test_the_servers_own_version_is_the_servers_interpreter(version: str):
    environment, interpreter = named_interpreter(version)
    assert environment.interpreter == sys.executable
    assert interpreter.version_text == OWN


def test_another_version_is_found_after_stubs_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.undo()
    path = python("3.12")
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}{os.pathsep}{tmp_path / 'second'}")
    write_program(tmp_path / "first" / "python3.12", "exit 127")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "python3.12").symlink_to(path)
    environment, interpreter = named_interpreter("3.12")
    assert environment.interpreter == str(tmp_path / "second" / "python3.12")
    assert interpreter.version[:2] == (3, 12)
    with pytest.raises(InvalidArgument, match="no such interpreter"):
        named_interpreter("3.12.99")


def test_interpreters_of_uv_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    path = python("3.12")
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    write_program(tmp_path / "first" / "uv", f'test "$1 $2" = "python find" && echo {path}')
    assert named_interpreter("3.12")[0].interpreter == str(path)


def test_a_missing_version_is_an_error_with_a_remedy():
    with pytest.raises(
        InvalidArgument, match=r"PYTHON_VERSION '3\.77': .* `uv python install 3\.77`"
    ):
        named_interpreter("3.77")


@pytest.mark.parametrize(
    "version", ["", "3", "2.7", "4.0", "3.x", "3.11.", "3.11; rm", " 3.11", "python3.11", "../3.11"]
)
def test_invalid_versions_are_rejected(version: str):
    with pytest.raises(InvalidArgument, match=f"'{version}' is not a version of Python 3"):
        named_interpreter(version)


@pytest.mark.parametrize("version", ["3.8", "3.8.18", "3.0"])
def test_old_versions_are_rejected(version: str):
    with pytest.raises(InvalidArgument, match=f"'{version}': models need Python 3.9 or newer"):
        named_interpreter(version)
