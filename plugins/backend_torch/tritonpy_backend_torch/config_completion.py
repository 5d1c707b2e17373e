"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tritonpy_backend_kit import config_completion
from tritonpy_backend_kit.config_completion import refuse_batching, server_inputs, server_outputs

if TYPE_CHECKING:
    from tritonpy_backend_torch.signature import Signature, TensorInfo, TensorSpec
    from tritonpy_protos.model_config_pb2 import ModelConfig


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in.

    `signature` must be complete. A model that supports batching gets `default_max_batch_size`,
    limited to the largest batch that it was exported for, if its `max_batch_size` is 0 or not set.
    Raises `InvalidArgument` if `max_batch_size` is set and the model does not support batching.
    """
    if signature.max_rows == 0:
        refuse_batching(config)
    managed = server_inputs(config) | server_outputs(config)
    return config_completion.complete_config(
        config,
        _named(signature.client_inputs, managed),
        _named(signature.outputs, managed),
        can_batch=signature.max_rows > 0,
        max_batch_size=min(default_max_batch_size, signature.max_rows),
    )


def _named(specs: Iterable[TensorSpec], managed: set[str]) -> dict[str, TensorInfo]:
    """Return the tensors by their preferred name, without those that the server manages."""
    found = {}
    for spec in specs:
        assert spec.info is not None, "only a complete signature completes: this is a bug"  # noqa: S101
        if managed.isdisjoint(spec.names):
            found[spec.names[0]] = spec.info
    return found
