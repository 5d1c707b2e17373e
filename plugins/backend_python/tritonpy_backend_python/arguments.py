"""What a model's `initialize` is given, and what its worker is told beside."""

from __future__ import annotations

import json
from typing import Any

from tritonpy import InstanceContext, InvalidArgument, ModelContext, config_to_dict, ipc, resolve_model_file
from tritonpy_backend_python.limits import Limits

DEFAULT_FILE = "model.py"
_INVALID_IN_NAMES = frozenset(";|&$`<>()[]{}\\\"'*?~#!")


def initialize_arguments(model: ModelContext, instance: InstanceContext) -> dict[str, str]:
    """Return `args`: every value is a text, as in Triton."""
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
    """Raise InvalidArgument, with Triton's text, for a model whose name has a character that means something to a shell."""
    if not _INVALID_IN_NAMES.isdisjoint(model):
        raise InvalidArgument("Invalid stub name: contains invalid characters")


def start_message(model: ModelContext, instance: InstanceContext, limits: Limits) -> dict[str, Any]:
    """Return what the worker of `instance` is to run. The server sees to the time of an execution; the worker knows that it does."""
    return {
        **model_message(model),
        "args": initialize_arguments(model, instance),
        "decoupled": model.config.model_transaction_policy.decoupled,
        "outputs": [output.name for output in model.config.output],
        "memory_limit": limits.memory,
        "execution_limit": limits.execution_s > 0,
    }


def model_message(model: ModelContext) -> dict[str, Any]:
    """Return where the model's code is: all that is known before its configuration is complete."""
    filename = model.config.default_model_filename or DEFAULT_FILE
    return {
        "version": ipc.VERSION,
        "kind": "python",
        "name": model.name,
        "model_file": str(resolve_model_file(filename, model.path, model.directory)),
        "model_version": str(model.version),
        "backend_directory": "" if model.backend_directory is None else str(model.backend_directory),
    }
