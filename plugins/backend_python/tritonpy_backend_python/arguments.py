"""Arguments of a model's `initialize`, and the start message of its worker."""

from __future__ import annotations

import json
from typing import Any

from tritonpy import InstanceContext, InvalidArgument, ModelContext
from tritonpy.config import config_to_dict, resolve_model_file
from tritonpy_backend_python.limits import WorkerLimits
from tritonpy_ipc import VERSION

DEFAULT_FILE = "model.py"
_INVALID_IN_NAMES = frozenset(";|&$`<>()[]{}\\\"'*?~#!")


def initialize_arguments(model: ModelContext, instance: InstanceContext) -> dict[str, str]:
    """Return `args` for `initialize`. As in Triton, every value is a string."""
    return {
        "model_config": json.dumps(config_to_dict(model.config)),
        "model_instance_kind": instance.kind,
        "model_instance_name": instance.name,
        "model_instance_device_id": str(instance.device_id),
        "model_repository": str(model.directory),
        "model_version": str(model.version),
        "model_name": model.name,
    }


def check_name(model: str) -> None:
    """Raise `InvalidArgument` with Triton's text if a name contains a shell metacharacter."""
    if not _INVALID_IN_NAMES.isdisjoint(model):
        raise InvalidArgument("Invalid stub name: contains invalid characters")


def start_message(
    model: ModelContext, instance: InstanceContext, limits: WorkerLimits
) -> dict[str, Any]:
    """Return the start message for the worker of `instance`.

    The server enforces the execution limit; the worker only needs to know that there is one.
    """
    return {
        **model_message(model),
        "args": initialize_arguments(model, instance),
        "decoupled": model.config.model_transaction_policy.decoupled,
        "outputs": [output.name for output in model.config.output],
        "memory_limit": limits.memory,
        "execution_limit": limits.execution_s > 0,
    }


def model_message(model: ModelContext) -> dict[str, Any]:
    """Return the part of the start message that locates the model's code.

    It does not depend on the completed configuration.
    """
    filename = model.config.default_model_filename or DEFAULT_FILE
    return {
        "version": VERSION,
        "kind": "python",
        "name": model.name,
        "model_file": str(resolve_model_file(filename, model.path, model.directory)),
        "model_version": str(model.version),
        "backend_directory": ""
        if model.backend_directory is None
        else str(model.backend_directory),
    }
