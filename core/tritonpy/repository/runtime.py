"""The `runtime` of a configuration: a Python-based backend or a registered one."""

from __future__ import annotations

from tritonpy.errors import InvalidArgument, PluginError
from tritonpy.plugins.backend_folders import MODEL_FILE
from tritonpy.plugins.backends import Backends
from tritonpy_protos.model_config_pb2 import ModelConfig


def resolve_runtime(config: ModelConfig, backends: Backends) -> str:
    """Return "model.py" if a Python-based backend serves the model, else the configured runtime.

    Raises `InvalidArgument` if the configured Python-based backend is missing and no plugin serves
    this runtime.
    """
    folders = backends.folders
    if (
        config.runtime == MODEL_FILE
        and not folders.has(config.backend)
        and not _plugin_serves_runtime(config, backends)
    ):
        raise InvalidArgument(
            f"unable to find Python backend based backend library '{MODEL_FILE}' for model '{config.name}', "
            f"searched: '{folders.folder(config.backend) / MODEL_FILE}'"
        )
    return config.runtime if backends.folder(config.backend, config.runtime) is None else MODEL_FILE


def _plugin_serves_runtime(config: ModelConfig, backends: Backends) -> bool:
    """Return whether a registered backend serves models with this runtime."""
    try:
        return config.runtime in backends.get(config.backend, config.runtime).runtimes
    except PluginError:
        return False
