"""Python environments: how to start an interpreter in one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonpy_backend_python.environments.lease import EnvironmentLease

_START = str(Path(__file__).with_name("start.sh"))


@dataclass(frozen=True)
class Environment:
    """An interpreter and the settings that it needs.

    `interpreter` is a path, or a name to be found on the PATH after the script `activate` ran.
    `variables` are added to the environment of its processes. `description` names it in logs and
    errors, and `remedy` says how to install `{package}` for its `{interpreter}`. `leases` protect
    its folders in the cache: keep the object while its interpreter runs, then call `release`.
    """

    interpreter: str
    description: str
    activate: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    remedy: str = "run {interpreter} -m pip install '{package}'"
    leases: tuple[EnvironmentLease, ...] = field(default=(), repr=False, compare=False)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts the interpreter with `arguments`."""
        program = [self.interpreter, *arguments]
        if self.activate is None:
            return program
        return ["bash", _START, str(self.activate), *program]

    def process_variables(self) -> dict[str, str]:
        """Return the environment variables of its processes: those of this process and its own."""
        return {**os.environ, **self.variables}

    def release(self) -> None:
        """Let the cache remove the environment when it has no other user."""
        for lease in self.leases:
            lease.release()


def folder_variables(folder: Path, below: Mapping[str, str]) -> dict[str, str]:
    """Return `below` plus the variables that an activation of `folder`'s environment sets."""
    path = below.get("PATH") or os.environ.get("PATH", os.defpath)
    variables = {**below, "PATH": f"{folder / 'bin'}{os.pathsep}{path}"}
    if (folder / "pyvenv.cfg").exists():
        variables["VIRTUAL_ENV"] = str(folder)
    if (folder / "conda-meta").exists():
        variables["CONDA_PREFIX"] = str(folder)
    return variables


def foreign_variables() -> dict[str, str]:
    """Return variables that hide settings of the server's interpreter from other interpreters."""
    return {"PYTHONHOME": ""} if "PYTHONHOME" in os.environ else {}
