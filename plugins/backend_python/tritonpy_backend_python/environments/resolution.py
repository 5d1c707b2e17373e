"""Selection and preparation of a model's environment.

The package's docstring describes the rule.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Protocol

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_python.environments import execution_environment, python_version
from tritonpy_backend_python.environments.cache import EnvironmentCache, cache_folder
from tritonpy_backend_python.environments.environment import Environment
from tritonpy_backend_python.environments.interpreter import interpreter_of, require_numpy
from tritonpy_backend_python.environments.requirements import NO_REQUIREMENTS, find_requirements
from tritonpy_backend_python.environments.virtual_environment import Base, virtual_environment


class EnvironmentOptions(Protocol):
    """The backend's option for the cache folder; an empty string means the default."""

    @property
    def environments_dir(self) -> str:
        """Return the folder."""


def resolve_environment(
    model_directory: Path,
    version_directory: Path,
    parameters: Mapping[str, str],
    options: EnvironmentOptions,
    log: logging.LoggerAdapter[logging.Logger],
) -> Environment:
    """Return the environment of a model version. Building it may take minutes.

    Release it when no interpreter runs in it. Raises `InvalidArgument` for invalid parameters, and
    `Internal` with a remedy if the environment cannot be built or lacks what models need.
    """
    cache = EnvironmentCache(
        cache_folder(options.environments_dir), configured=bool(options.environments_dir)
    )
    try:
        base = _base(model_directory, parameters, cache, log)
        with _released_on_failure(base.environment):
            requirements = find_requirements(version_directory, model_directory, cache.digests)
            if requirements is None and base.runs_models:
                return _checked(base.environment)
            return _checked(virtual_environment(base, requirements or NO_REQUIREMENTS, cache, log))
    except OSError as error:
        raise Internal(
            f"the Python environment of the model cannot be prepared: {error}"
        ) from error


def _checked(environment: Environment) -> Environment:
    with _released_on_failure(environment):
        require_numpy(environment, interpreter_of(environment))
        return environment


@contextlib.contextmanager
def _released_on_failure(environment: Environment) -> Generator[None, None, None]:
    try:
        yield
    except BaseException:
        environment.release()
        raise


def _base(
    model_directory: Path,
    parameters: Mapping[str, str],
    cache: EnvironmentCache,
    log: logging.LoggerAdapter[logging.Logger],
) -> Base:
    path, version = (
        parameters.get(execution_environment.PARAMETER, ""),
        parameters.get(python_version.PARAMETER, ""),
    )
    if not path and version:
        return Base(*python_version.named_interpreter(version), runs_models=False, layered=False)
    if not path:
        environment = Environment(sys.executable, f"the server's interpreter {sys.executable}")
        return Base(environment, interpreter_of(environment), runs_models=True, layered=False)
    environment = execution_environment.execution_environment(path, model_directory, cache, log)
    with _released_on_failure(environment):
        interpreter = interpreter_of(environment)
        if version and not python_version.is_of_version(interpreter, version):
            raise InvalidArgument(
                f"{python_version.PARAMETER} '{version}' contradicts "
                f"{execution_environment.PARAMETER}, which has Python "
                f"{interpreter.version_text}: leave one of them out"
            )
        return Base(environment, interpreter, runs_models=True, layered=True)
