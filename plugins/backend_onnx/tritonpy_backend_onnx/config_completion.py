"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy_backend_kit import config_completion
from tritonpy_backend_kit.config_completion import refuse_batching

if TYPE_CHECKING:
    from tritonpy_backend_onnx.signature import Signature
    from tritonpy_protos.model_config_pb2 import ModelConfig


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with tensors, batch size and batching filled in as in Triton.

    A model that supports batching gets `default_max_batch_size` if its `max_batch_size` is 0 or not
    set. Raises `InvalidArgument` if `max_batch_size` is set and the model does not support
    batching.
    """
    if not signature.can_batch:
        refuse_batching(config)
    return config_completion.complete_config(
        config,
        signature.inputs,
        signature.outputs,
        can_batch=signature.can_batch,
        max_batch_size=default_max_batch_size,
    )
