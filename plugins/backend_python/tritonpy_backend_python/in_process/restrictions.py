"""Restrictions of models in the server's process."""

from __future__ import annotations

from tritonpy import InvalidArgument, ModelContext
from tritonpy_backend_python.environments.execution_environment import (
    PARAMETER as EXECUTION_ENVIRONMENT,
)
from tritonpy_backend_python.environments.python_version import PARAMETER as VERSION
from tritonpy_backend_python.environments.requirements import FILE_NAME
from tritonpy_backend_python.limits import EXECUTION, MEMORY, limits_of
from tritonpy_backend_python.options import PythonOptions


def check_supported(model: ModelContext) -> None:
    """Raise `InvalidArgument` for a model that needs its own process."""
    needed = [*environment_requirements(model), *_limits(model)]
    if needed:
        raise InvalidArgument(
            f"model '{model.name}' runs in the server's process (parameter 'isolation' is "
            '"thread"), which does not support '
            f"{' and '.join(needed)}: remove that, or run the model in its own process with "
            'isolation "process"'
        )


def environment_requirements(model: ModelContext) -> list[str]:
    """Return the parameters and files that ask for a separate interpreter or packages."""
    parameters = [name for name in (EXECUTION_ENVIRONMENT, VERSION) if model.parameters.get(name)]
    files = [folder / FILE_NAME for folder in (model.path, model.directory)]
    return [*parameters, *(str(file) for file in files if file.is_file())]


def _limits(model: ModelContext) -> list[str]:
    options = model.options
    assert isinstance(options, PythonOptions), "bug: the core must decode the backend's options"  # noqa: S101
    limits = limits_of(model, options)
    return [
        name for name, value in ((EXECUTION, limits.execution_s), (MEMORY, limits.memory)) if value
    ]
