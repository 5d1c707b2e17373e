"""What is known of a server and a model before the load begins."""

from __future__ import annotations

import msgspec


class TensorFacts(msgspec.Struct, frozen=True):
    """An input or output; `dims` without the batch dimension, -1 varies."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


class ModelFacts(msgspec.Struct, frozen=True):
    """A model as its server describes it. `max_batch_size` 0: requests have no batch dimension."""

    name: str
    version: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    max_batch_size: int = 0
    decoupled: bool = False
    sequence: bool = False
    members: tuple[str, ...] = ()
    """Models that an ensemble stands on, and theirs."""


class ServerFacts(msgspec.Struct, frozen=True):
    """A server as it describes itself."""

    name: str
    version: str
    extensions: tuple[str, ...]

    @property
    def binary(self) -> bool:
        """Whether tensors may travel as bytes over HTTP."""
        return "binary_tensor_data" in self.extensions


class TargetFacts(msgspec.Struct, frozen=True):
    """Both."""

    server: ServerFacts
    model: ModelFacts
