"""What a job needs to know of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tritonpy_batch.options import InvalidJob


class RowTensor(msgspec.Struct, frozen=True):
    """One input or output; `dims` are those of a row, without the batch dimension; -1 is any."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


class ModelInterface(msgspec.Struct, frozen=True):
    """Inputs and outputs of a model; `max_batch_size` 0: each request has one row.

    `instances` is the number of its instances, `config_digest` changes with its configuration.
    """

    name: str
    version: str
    max_batch_size: int
    inputs: tuple[RowTensor, ...]
    outputs: tuple[RowTensor, ...]
    instances: int
    config_digest: str


def read_interface(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> ModelInterface:
    """Return the interface from the protocol's metadata and configuration.

    Raises InvalidJob for models whose requests depend on each other or have several responses.
    """
    name = str(metadata["name"])
    if "sequence_batching" in config:
        raise InvalidJob(f"model '{name}' serves sequences, whose requests depend on each other")
    if (config.get("model_transaction_policy") or {}).get("decoupled"):
        raise InvalidJob(
            f"model '{name}' is decoupled: it may send any number of responses per row; for "
            "language models use a file of OpenAI requests"
        )
    max_batch_size = int(config.get("max_batch_size", 0))
    optional = {each["name"] for each in config.get("input", ()) if each.get("optional")}
    groups: Sequence[Mapping[str, Any]] = config.get("instance_group") or ()
    versions = [str(each) for each in metadata.get("versions") or ()] or [""]
    plain = repr(sorted((key, repr(value)) for key, value in config.items()))
    return ModelInterface(
        name,
        max(versions, key=lambda text: (len(text), text)),
        max_batch_size,
        _specs(metadata["inputs"], max_batch_size, optional),
        _specs(metadata["outputs"], max_batch_size, frozenset()),
        sum(int(group.get("count", 1)) for group in groups) or 1,
        hashlib.sha256(plain.encode()).hexdigest()[:16],
    )


def _specs(
    tensors: Sequence[Mapping[str, Any]], max_batch_size: int, optional: set[str] | frozenset[str]
) -> tuple[RowTensor, ...]:
    return tuple(
        RowTensor(
            str(each["name"]),
            str(each["datatype"]),
            tuple(int(dim) for dim in each["shape"])[1 if max_batch_size else 0 :],
            each["name"] in optional,
        )
        for each in tensors
    )
