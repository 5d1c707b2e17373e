"""How a Python program is started in an environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonpy_backend_python.environments.lease import Lease

_START = str(Path(__file__).with_name("start.sh"))


@dataclass(frozen=True)
class Environment:
    """An interpreter and what it needs round it.

    `interpreter` is a path, or a name to be found on the PATH that the script `activate` leaves. `variables` are added to
    the environment of its processes; `description` names it in the log and in error texts, `remedy` says how
    `{package}` is installed for its `{interpreter}`. `leases` keep what is in the cache from being removed: hold the
    object while its interpreter runs, then `release` it.
    """

    interpreter: str
    description: str
    activate: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    remedy: str = "run {interpreter} -m pip install '{package}'"
    leases: tuple[Lease, ...] = field(default=(), repr=False, compare=False)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the words that start the interpreter with `arguments`; the process that they start becomes it."""
        program = [self.interpreter, *arguments]
        if self.activate is None:
            return program
        return ["bash", _START, str(self.activate), *program]

    def process_variables(self) -> dict[str, str]:
        """Return all the variables of a process in this environment: those of this process and its own."""
        return {**os.environ, **self.variables}

    def release(self) -> None:
        """Let the cache remove what this environment used, once nobody else uses it."""
        for lease in self.leases:
            lease.release()


def folder_variables(folder: Path, below: Mapping[str, str]) -> dict[str, str]:
    """Return what activating the environment in `folder` means, on top of the variables `below`."""
    path = below.get("PATH") or os.environ.get("PATH", os.defpath)
    variables = {**below, "PATH": f"{folder / 'bin'}{os.pathsep}{path}"}
    if (folder / "pyvenv.cfg").exists():
        variables["VIRTUAL_ENV"] = str(folder)
    if (folder / "conda-meta").exists():
        variables["CONDA_PREFIX"] = str(folder)
    return variables


def foreign_variables() -> dict[str, str]:
    """Return what another interpreter than the server's must not inherit, made void."""
    return {"PYTHONHOME": ""} if "PYTHONHOME" in os.environ else {}
