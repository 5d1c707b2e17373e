"""Builds the environment of a requirements.txt, once for all models that say the same."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tritonpy import Internal
from tritonpy_backend_python.environments.cache import EnvironmentCache
from tritonpy_backend_python.environments.environment import Environment, folder_variables, foreign_variables
from tritonpy_backend_python.environments.installers import Installer, choose_installer, installer_variables
from tritonpy_backend_python.environments.interpreter import OLDEST_NUMPY, Interpreter, interpreter_of
from tritonpy_backend_python.environments.process import CommandFailed, run_logged
from tritonpy_backend_python.environments.requirements import Requirements

_LAYOUT = 1  # another number when environments are built in another way
NUMPY = f"numpy>={'.'.join(map(str, OLDEST_NUMPY))}"


@dataclass(frozen=True)
class Base:
    """What an environment is built on.

    `runs_models`: a model without requirements runs in it as it is. `layered`: what is built on it sees its packages too.
    """

    environment: Environment
    interpreter: Interpreter
    runs_models: bool
    layered: bool


def virtual_environment(
    base: Base, requirements: Requirements, cache: EnvironmentCache, log: logging.LoggerAdapter[logging.Logger]
) -> Environment:
    """Return the environment with `requirements`, and numpy, for the interpreter of `base`.

    Raises Internal with the end of the installer's output where it fails.
    """
    builder = _Builder(base, requirements, log)
    lease = cache.obtain(_name(base, requirements), requirements.source, builder.build, log)
    return replace(builder.environment(lease.folder), leases=(*base.environment.leases, lease))


def _name(base: Base, requirements: Requirements) -> str:
    below = base.interpreter.site_packages if base.layered else ()
    key = json.dumps([_LAYOUT, base.interpreter.identity, below, requirements.digest])
    return f"python{base.interpreter.version_text}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


class _Builder:
    """One build; a step that fails ends it."""

    def __init__(self, base: Base, requirements: Requirements, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self._base = base
        self._requirements = requirements
        self._log = log

    def environment(self, folder: Path) -> Environment:
        """Return how the environment in `folder` is used."""
        below, source = self._base.environment, self._requirements.source
        variables = below.variables if self._base.layered else foreign_variables()
        return Environment(
            interpreter=str(folder / "bin" / "python"),
            description=f"the environment of {source} on Python {self._base.interpreter.version_text}",
            activate=below.activate if self._base.layered else None,
            variables=folder_variables(folder, variables),
            remedy=f"add '{{package}}' to {source}",
        )

    def build(self, folder: Path, lock: int) -> None:
        """Fill the empty `folder`. Raises Internal."""
        base, environment = self._base.environment, self.environment(folder)
        installer = choose_installer(self._base.layered)
        self._log.info("building %s in %s with %s", environment.description, folder, installer.name)
        self._run(installer.create(base, folder), base, lock)
        if self._base.layered:
            self._show_base(folder)
        self._install(installer, environment, lock)

    def _install(self, installer: Installer, environment: Environment, lock: int) -> None:
        asked = self._requirements.arguments
        if asked:
            self._run(installer.install(environment, asked), environment, lock)
        if not interpreter_of(environment).numpy:
            # beside the requirements, because their index and their constraints count for numpy too
            self._run(installer.install(environment, [*asked, NUMPY]), environment, lock)

    def _show_base(self, folder: Path) -> None:
        """Let the packages of the base be found after the environment's own.

        The option --system-site-packages would show those of the interpreter that a virtual environment was made from,
        not those of the environment.
        """
        lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in self._base.interpreter.site_packages)
        for packages in folder.glob("lib/python*/site-packages"):
            (packages / "environment_below.pth").write_text(lines, encoding="utf-8")

    def _run(self, command: list[str], environment: Environment, lock: int) -> None:
        source = self._requirements.source
        try:
            run_logged(command, self._requirements.folder, installer_variables(environment), lock, self._say)
        except (CommandFailed, OSError) as error:
            raise Internal(
                f"{source} cannot be installed for Python {self._base.interpreter.version_text}: {error}\n"
                "Correct the file, or the index, proxy or certificates that the installer uses (its settings are those of "
                "this server's user), then load the model again: nothing of this attempt was kept."
            ) from error

    def _say(self, line: str) -> None:
        self._log.info("%s: %s", os.path.basename(self._requirements.source), line)
