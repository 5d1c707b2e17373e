"""Descriptions of a server, a model and its tensors."""

from __future__ import annotations

import msgspec


class TensorDescription(msgspec.Struct, frozen=True):
    """An input or output; `dims` exclude the batch dimension, and -1 is variable."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


class ModelDescription(msgspec.Struct, frozen=True):
    """A model as its server describes it; with `max_batch_size` 0, there is no batch dimension."""

    name: str
    version: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    max_batch_size: int = 0
    decoupled: bool = False
    sequence: bool = False
    members: tuple[str, ...] = ()
    """All direct and indirect member models of an ensemble."""


class ServerDescription(msgspec.Struct, frozen=True):
    """A server as it describes itself."""

    name: str
    version: str
    extensions: tuple[str, ...]

    @property
    def binary(self) -> bool:
        """Whether the server supports binary tensors over HTTP."""
        return "binary_tensor_data" in self.extensions


class TargetDescription(msgspec.Struct, frozen=True):
    """A server and one of its models."""

    server: ServerDescription
    model: ModelDescription
