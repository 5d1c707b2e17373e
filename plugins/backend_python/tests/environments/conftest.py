"""Fixtures for a model, a cache and a package index."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tritonpy_backend_python.environments import Environment, resolve_environment
from tritonpy_backend_python.environments.cache import EnvironmentCache
from tritonpy_backend_python.environments.interpreter import _known
from tritonpy_backend_python.options import PythonOptions

from .pythons import make_venv
from .wheels import NUMPY, write_numpy, write_wheel

Venv = Callable[..., Path]


@dataclass
class Model:
    """A model's folder with one version, and the arguments of its load."""

    directory: Path
    options: PythonOptions
    log: logging.LoggerAdapter[logging.Logger]

    @property
    def version(self) -> Path:
        return self.directory / "1"

    def require(self, text: str, folder: str = "1") -> Path:
        path = self.directory / folder / "requirements.txt"
        path.write_text(text, encoding="utf-8")
        return path

    def resolve(self, **parameters: str) -> Environment:
        return resolve_environment(self.directory, self.version, parameters, self.options, self.log)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> logging.LoggerAdapter[logging.Logger]:
    caplog.set_level(logging.INFO)
    return logging.LoggerAdapter(logging.getLogger("tritonpy.test"), {})


@pytest.fixture
def cache(tmp_path: Path) -> EnvironmentCache:
    return EnvironmentCache(tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path, log: logging.LoggerAdapter[logging.Logger]) -> Model:
    (tmp_path / "model" / "1").mkdir(parents=True)
    return Model(tmp_path / "model", PythonOptions(environments_dir=str(tmp_path / "cache")), log)


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    _known.clear()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let both installers find only the wheels in one folder: numpy, and those that a test adds."""
    folder = tmp_path / "wheels"
    write_wheel(folder, "numpy", NUMPY)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(folder),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def no_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a failing uv first on the PATH, like the stubs of version managers."""
    write_program(tmp_path / "no-uv" / "uv", "exit 127")
    monkeypatch.setenv("PATH", f"{tmp_path / 'no-uv'}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture(params=["uv", "pip"])
def installer(request: pytest.FixtureRequest, index: Path) -> Any:
    """Run the test once with uv and once without it."""
    if request.param == "pip":
        request.getfixturevalue("no_uv")
    else:
        require_uv()
    return request.param


@pytest.fixture
def venv(tmp_path: Path) -> Venv:
    """Return a function that creates a virtual environment with a version of numpy, or without."""

    def make(interpreter: Path | str, numpy: str = NUMPY, name: str = "venv") -> Path:
        packages = make_venv(tmp_path / name, interpreter)
        if numpy:
            write_numpy(packages, numpy)
        return tmp_path / name

    return make


def require_uv() -> None:
    """Skip the test if uv does not work."""
    found = shutil.which("uv")
    if (
        not found
        or subprocess.run([found, "--version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs uv")


def write_program(path: Path, body: str) -> Path:
    """Write a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def output_of(environment: Environment, code: str, *arguments: str) -> str:
    """Return the output of a program in the environment."""
    command = environment.command(["-c", code, *arguments])
    done = subprocess.run(
        command,
        env=environment.process_variables(),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    return done.stdout.strip()
