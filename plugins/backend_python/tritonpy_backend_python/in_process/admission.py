"""What a model cannot have in the server's own process."""

from __future__ import annotations

from tritonpy import InvalidArgument, ModelContext
from tritonpy_backend_python.environments.execution import PARAMETER as EXECUTION_ENVIRONMENT
from tritonpy_backend_python.environments.requirements import FILE_NAME
from tritonpy_backend_python.environments.versions import PARAMETER as VERSION
from tritonpy_backend_python.limits import EXECUTION, MEMORY, limits_of
from tritonpy_backend_python.options import PythonOptions


def check_admission(model: ModelContext) -> None:
    """Raise InvalidArgument for a model that asks for what needs a process of its own."""
    wishes = [*environment_wishes(model), *_limits(model)]
    if wishes:
        raise InvalidArgument(
            f"model '{model.name}' runs in the server's own process (parameter 'isolation' is \"thread\"), where there is no "
            f'{" and no ".join(wishes)}: leave that out, or give the model a process of its own with isolation "process"'
        )


def environment_wishes(model: ModelContext) -> list[str]:
    """Return what says that the model needs an interpreter or packages of its own."""
    parameters = [name for name in (EXECUTION_ENVIRONMENT, VERSION) if model.parameters.get(name)]
    files = [folder / FILE_NAME for folder in (model.path, model.directory)]
    return [*parameters, *(str(file) for file in files if file.is_file())]


def _limits(model: ModelContext) -> list[str]:
    options = model.options
    assert isinstance(options, PythonOptions), "the core decodes the options of a backend: this is a bug"  # noqa: S101
    limits = limits_of(model, options)
    return [name for name, value in ((EXECUTION, limits.execution_s), (MEMORY, limits.memory)) if value]
