"""Virtual environments for requirements, built once for all models with equal requirements."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tritonpy import Internal
from tritonpy_backend_python.environments.cache import EnvironmentCache
from tritonpy_backend_python.environments.environment import (
    Environment,
    folder_variables,
    foreign_variables,
)
from tritonpy_backend_python.environments.installers import (
    Installer,
    choose_installer,
    installer_variables,
)
from tritonpy_backend_python.environments.interpreter import (
    OLDEST_NUMPY,
    Interpreter,
    interpreter_of,
)
from tritonpy_backend_python.environments.process import CommandFailed, run_logged
from tritonpy_backend_python.environments.requirements import Requirements

_LAYOUT = 1  # part of the names; a new number makes all environments be built again
NUMPY = f"numpy>={'.'.join(map(str, OLDEST_NUMPY))}"


@dataclass(frozen=True)
class Base:
    """The environment that another one is built on.

    `runs_models`: models without requirements run in it directly. `layered`: environments built on
    it also see its packages.
    """

    environment: Environment
    interpreter: Interpreter
    runs_models: bool
    layered: bool


def virtual_environment(
    base: Base,
    requirements: Requirements,
    cache: EnvironmentCache,
    log: logging.LoggerAdapter[logging.Logger],
) -> Environment:
    """Return the environment with `requirements` and numpy for the interpreter of `base`.

    Raises `Internal` with the end of the installer's output if the build fails.
    """
    builder = _Builder(base, requirements, log)
    lease = cache.obtain(_name(base, requirements), requirements.source, builder.build, log)
    return replace(builder.environment(lease.folder), leases=(*base.environment.leases, lease))


def _name(base: Base, requirements: Requirements) -> str:
    below = base.interpreter.site_packages if base.layered else ()
    key = json.dumps([_LAYOUT, base.interpreter.identity, below, requirements.digest])
    return f"python{base.interpreter.version_text}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


class _Builder:
    """Builds one environment. The first failed step ends the build."""

    def __init__(
        self, base: Base, requirements: Requirements, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        self._base = base
        self._requirements = requirements
        self._log = log

    def environment(self, folder: Path) -> Environment:
        """Return the environment in `folder`, which `build` fills."""
        below, source = self._base.environment, self._requirements.source
        variables = below.variables if self._base.layered else foreign_variables()
        return Environment(
            interpreter=str(folder / "bin" / "python"),
            description=(
                f"the environment of {source} on Python {self._base.interpreter.version_text}"
            ),
            activate=below.activate if self._base.layered else None,
            variables=folder_variables(folder, variables),
            remedy=f"add '{{package}}' to {source}",
        )

    def build(self, folder: Path, lock: int) -> None:
        """Build the environment in the empty `folder`. Raises `Internal` if it fails."""
        base, environment = self._base.environment, self.environment(folder)
        installer = choose_installer(self._base.layered)
        self._log.info("building %s in %s with %s", environment.description, folder, installer.name)
        self._run(installer.create(base, folder), base, lock)
        if self._base.layered:
            self._add_base_packages(folder)
        self._install(installer, environment, lock)

    def _install(self, installer: Installer, environment: Environment, lock: int) -> None:
        arguments = self._requirements.arguments
        if arguments:
            self._run(installer.install(environment, arguments), environment, lock)
        if not interpreter_of(environment).numpy:
            # With the same arguments, because their index and constraints also apply to numpy.
            self._run(installer.install(environment, [*arguments, NUMPY]), environment, lock)

    def _add_base_packages(self, folder: Path) -> None:
        """Make the packages of the base importable, after the environment's own.

        --system-site-packages would expose the packages of the interpreter that a virtual
        environment was created from, not those of the environment.
        """
        lines = "".join(
            f"import site; site.addsitedir({path!r})\n"
            for path in self._base.interpreter.site_packages
        )
        for packages in folder.glob("lib/python*/site-packages"):
            (packages / "environment_below.pth").write_text(lines, encoding="utf-8")

    def _run(self, command: list[str], environment: Environment, lock: int) -> None:
        source = self._requirements.source
        try:
            run_logged(
                command,
                self._requirements.folder,
                installer_variables(environment),
                lock,
                self._log_line,
            )
        except (CommandFailed, OSError) as error:
            raise Internal(
                f"{source} cannot be installed for Python {self._base.interpreter.version_text}: "
                f"{error}\n"
                "Correct the file, or the installer's index, proxy or certificates (its settings "
                "are those of this server's "
                "user), then load the model again. Nothing of this attempt was kept."
            ) from error

    def _log_line(self, line: str) -> None:
        self._log.info("%s: %s", os.path.basename(self._requirements.source), line)
