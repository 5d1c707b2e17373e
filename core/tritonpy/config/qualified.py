"""Names of models that are unique though several repositories may hold models of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelEnsembling

SEPARATOR = "::"


def qualified(namespace: str, name: str) -> str:
    """Return the name of a model within all namespaces; where there are none, `namespace` is empty and its name is enough."""
    return f"{namespace}{SEPARATOR}{name}" if namespace else name


def namespace_of(key: str, name: str) -> str:
    """Return the namespace in which `name` is called `key`."""
    return "" if key == name else key.removesuffix(f"{SEPARATOR}{name}")


def called_model(step: ModelEnsembling.Step) -> str:
    """Return the name by which an ensemble asks the engine for the model of a step, of its final configuration."""
    return qualified(step.model_namespace, step.model_name)
