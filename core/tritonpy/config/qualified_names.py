"""Model names that are unique even if several repositories contain models of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelEnsembling

SEPARATOR = "::"


def qualified_name(namespace: str, name: str) -> str:
    """Return the name of a model that is unique in all namespaces.

    Without a namespace, it is `name` itself.
    """
    return f"{namespace}{SEPARATOR}{name}" if namespace else name


def namespace_of(key: str, name: str) -> str:
    """Return the namespace in which the model `name` has the qualified name `key`."""
    return "" if key == name else key.removesuffix(f"{SEPARATOR}{name}")


def called_model(step: ModelEnsembling.Step) -> str:
    """Return the engine's name for the model of an ensemble's step, after normalization."""
    return qualified_name(step.model_namespace, step.model_name)
