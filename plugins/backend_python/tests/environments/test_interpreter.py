from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments import interpreter as module
from tritonpy_backend_python.environments.environment import Environment
from tritonpy_backend_python.environments.interpreter import interpreter_of, require_numpy

from .conftest import Venv, write_program
from .pythons import python
from .wheels import write_numpy


def test_properties_of_an_interpreter():
    found = interpreter_of(Environment(sys.executable, "a test"))
    assert found.version == sys.version_info[:3]
    assert found.version_text == sys.version.split()[0]
    assert found.executable == sys.executable
    assert found.numpy == np.__version__
    assert found.has_numpy
    assert str(Path(np.__file__).parents[1]) in found.site_packages


@pytest.mark.parametrize("version", ["3.9", "3.12"])
def test_other_versions_are_usable(venv: Venv, version: str):
    folder = venv(python(version))
    environment = Environment(str(folder / "bin" / "python"), "a test")
    found = interpreter_of(environment)
    assert found.version_text.startswith(version)
    require_numpy(environment, found)


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8"])
def test_old_versions_are_rejected(version: str):
    path = python(version)
    with pytest.raises(
        InvalidArgument,
        match=rf"a test has Python {version}\.\d+ \(.*\), models need Python 3.9 or",
    ):
        interpreter_of(Environment(str(path), "a test"))


def test_an_interpreter_is_inspected_again_after_its_file_changed(
    tmp_path: Path, venv: Venv, monkeypatch: pytest.MonkeyPatch
):
    environment = Environment(str(venv(sys.executable) / "bin" / "python"), "a test")
    first = interpreter_of(environment)
    inspected: list[Environment] = []
    monkeypatch.setattr(module, "_inspect", lambda it: inspected.append(it) or first)
    assert interpreter_of(environment) == first
    assert inspected == []
    other = write_program(tmp_path / "other", "")
    os.unlink(environment.interpreter)
    os.rename(other, environment.interpreter)
    interpreter_of(environment)
    assert inspected == [environment]


def test_an_interpreter_without_numpy_is_inspected_again(venv: Venv):
    folder = venv(sys.executable, numpy="")
    environment = Environment(str(folder / "bin" / "python"), "the test's environment")
    with pytest.raises(Internal) as raised:
        require_numpy(environment, interpreter_of(environment))
    assert raised.value.message == (
        "the test's environment has no numpy (ModuleNotFoundError: No module named 'numpy'), models need 1.21 or newer: "
        f"run {folder}/bin/python -m pip install 'numpy>=1.21'"
    )
    write_numpy(next(folder.glob("lib/python*/site-packages")))
    require_numpy(environment, interpreter_of(environment))


@pytest.mark.parametrize(
    ("numpy", "serves"), [("1.20.3", False), ("1.21.0rc1", True), ("2", True), ("10.0", True)]
)
def test_numpy_must_be_new_enough(venv: Venv, numpy: str, serves: bool):
    environment = Environment(str(venv(sys.executable, numpy) / "bin" / "python"), "a test")
    found = interpreter_of(environment)
    assert found.has_numpy == serves
    if not serves:
        with pytest.raises(
            Internal, match=r"a test has numpy 1\.20\.3, models need 1\.21 or newer"
        ):
            require_numpy(environment, found)


def test_a_broken_numpy_is_an_error(venv: Venv):
    folder = venv(sys.executable, numpy="")
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "numpy.py").write_text("raise RuntimeError('built for another Python')\n")
    environment = Environment(str(folder / "bin" / "python"), "a test")
    with pytest.raises(Internal, match=r"has no numpy \(RuntimeError: built for another Python\)"):
        require_numpy(environment, interpreter_of(environment))


def test_the_servers_folder_is_not_searched(
    venv: Venv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_numpy(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    assert not interpreter_of(
        Environment(str(venv(sys.executable, numpy="") / "bin" / "python"), "a test")
    ).has_numpy


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (None, "No such file or directory"),
        ("echo it is broken >&2; exit 3", "status 3: it is broken"),
        ("echo no answer", "Expecting value"),
        ("exit 0", "list index out of range"),
    ],
)
def test_an_interpreter_that_cannot_start_is_an_error(
    tmp_path: Path, program: str | None, reason: str
):
    path = tmp_path / "python"
    if program is not None:
        write_program(path, program)
    with pytest.raises(
        Internal, match=rf"a test: its interpreter {path} cannot be started: .*{reason}"
    ):
        interpreter_of(Environment(str(path), "a test"))


def test_an_interpreter_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 0.1)
    path = write_program(tmp_path / "python", "exec sleep 600")
    with pytest.raises(Internal, match=r"no answer after 0\.1 s"):
        interpreter_of(Environment(str(path), "a test"))


def test_output_of_a_script_is_ignored(tmp_path: Path):
    (tmp_path / "activate").write_text("echo '{\"version\": [1]}'\n")
    found = interpreter_of(Environment(sys.executable, "a test", activate=tmp_path / "activate"))
    assert found.version == sys.version_info[:3]


def test_interpreters_with_different_packages_have_equal_identities(venv: Venv):
    first = interpreter_of(Environment(str(venv(sys.executable, name="a") / "bin" / "python"), "a"))
    second = interpreter_of(
        Environment(str(venv(sys.executable, name="b") / "bin" / "python"), "b")
    )
    other = interpreter_of(Environment(str(venv(python("3.12"), name="c") / "bin" / "python"), "c"))
    assert first.identity == second.identity != other.identity
