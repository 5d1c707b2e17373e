"""What serves a model: the configuration's `runtime`."""

from __future__ import annotations

from tritonpy.errors import InvalidArgument, PluginError
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.python_based import MODEL_FILE
from tritonpy_protos.model_config_pb2 import ModelConfig


def runtime_of(config: ModelConfig, backends: Backends) -> str:
    """Return "model.py" where a Python-based backend serves the model, otherwise what the configuration says.

    Raises InvalidArgument where the configuration asks for a Python-based backend that is not there, and whose place no plugin takes.
    """
    folders = backends.folders
    if config.runtime == MODEL_FILE and not folders.has(config.backend) and not _stands_in(config, backends):
        raise InvalidArgument(
            f"unable to find Python backend based backend library '{MODEL_FILE}' for model '{config.name}', "
            f"searched: '{folders.folder(config.backend) / MODEL_FILE}'"
        )
    return config.runtime if backends.folder(config.backend, config.runtime) is None else MODEL_FILE


def _stands_in(config: ModelConfig, backends: Backends) -> bool:
    """Say whether a registered backend serves the models that ask for this runtime of it."""
    try:
        return config.runtime in backends.get(config.backend, config.runtime).runtimes
    except PluginError:
        return False
