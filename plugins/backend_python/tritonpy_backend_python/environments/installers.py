"""The programs that fill a virtual environment: uv where it works, else venv and pip.

Both read the user's own settings (index, proxy, certificates: their environment variables and files); none is overridden.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tritonpy_backend_python.environments.environment import Environment

# A model's own search path is none of an installer's: what lies there would count as installed.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class Installer(ABC):
    """Gives the commands."""

    name: str

    @abstractmethod
    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that makes an empty virtual environment of the interpreter of `base`."""

    @abstractmethod
    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs into it; `arguments` are those of `pip install`."""


class Uv(Installer):
    """Fast; sees only what is in the environment itself, nothing of one below."""

    name = "uv"

    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that makes an empty virtual environment."""
        return ["uv", "venv", "--quiet", "--no-project", "--python", base.interpreter, str(folder)]

    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs into it."""
        return ["uv", "pip", "install", "--python", environment.interpreter, *arguments]


class Pip(Installer):
    """Comes with Python; counts what an environment below has installed."""

    name = "venv and pip"

    def create(self, base: Environment, folder: Path) -> list[str]:
        """Return the command that makes an empty virtual environment, with pip in it."""
        return base.command(["-m", "venv", str(folder)])

    def install(self, environment: Environment, arguments: Sequence[str]) -> list[str]:
        """Return the command that installs into it."""
        quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
        return environment.command(["-m", "pip", "install", *quiet, *arguments])


def choose_installer(layered: bool) -> Installer:
    """Return uv where it runs, but pip for an environment on top of another one, which uv would install anew."""
    return Pip() if layered or not _uv_runs() else Uv()


def installer_variables(environment: Environment) -> dict[str, str]:
    """Return the variables of an installer for `environment`: this process's without foreign ones, output line by line."""
    own = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return {**own, **environment.variables, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


def _uv_runs() -> bool:
    try:  # a name on the PATH is not enough: version managers leave names behind that only fail
        return subprocess.run(["uv", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
