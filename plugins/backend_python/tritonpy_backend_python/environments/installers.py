"""Installers of virtual environments: uv if it works, else venv and pip.

Both use the user's settings for index, proxy and certificates, from environment variables and
files.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tritonpy_backend_python.environments.environment import Environment

# A model's search path must not influence an installer: packages there would count as installed.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class Installer(ABC):
    """The commands of an installer."""

    name: str

    @abstractmethod
    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that creates an empty environment for the interpreter of `base`."""

    @abstractmethod
    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs packages. `arguments` are those of `pip install`."""


class Uv(Installer):
    """uv: fast, but ignores the base's packages of a layered environment."""

    name = "uv"

    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that creates an empty virtual environment."""
        return ["uv", "venv", "--quiet", "--no-project", "--python", base.interpreter, str(folder)]

    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs packages."""
        return ["uv", "pip", "install", "--python", environment.interpreter, *arguments]


class Pip(Installer):
    """venv and pip: part of Python, and aware of the base's packages of a layered environment."""

    name = "venv and pip"

    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that creates a virtual environment with pip."""
        return base.command(["-m", "venv", str(folder)])

    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs packages."""
        quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
        return environment.command(["-m", "pip", "install", *quiet, *arguments])


def choose_installer(layered: bool) -> Installer:
    """Return uv if it works.

    For a layered environment return pip: uv would reinstall the base's packages.
    """
    return Pip() if layered or not _uv_runs() else Uv()


def installer_variables(environment: Environment) -> dict[str, str]:
    """Return an installer's environment variables: no foreign paths, unbuffered output."""
    own = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return {**own, **environment.variables, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


def _uv_runs() -> bool:
    try:  # a file on the PATH is not enough: version managers leave stubs that only fail
        return subprocess.run(["uv", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
