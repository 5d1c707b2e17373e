"""What clients are told of a model, from its configuration. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tritonpy.api.engine import ModelMetadata, TensorMetadata
from tritonpy.types import DATATYPE_OF_NUMBER

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def model_metadata(config: ModelConfig, versions: Iterable[int]) -> ModelMetadata:
    """Return name, versions, platform (the backend where there is none) and tensors, shapes with the batch dimension."""
    return ModelMetadata(
        name=config.name,
        versions=[str(version) for version in versions],
        platform=config.platform or config.backend,
        inputs=[_tensor(config, tensor) for tensor in config.input],
        outputs=[_tensor(config, tensor) for tensor in config.output],
    )


def _tensor(config: ModelConfig, tensor: ModelInput | ModelOutput) -> TensorMetadata:
    # A shape tensor is sent without it, but Triton's clients take it off what they are told.
    batch = [-1] if config.max_batch_size > 0 else []
    return TensorMetadata(tensor.name, DATATYPE_OF_NUMBER[tensor.data_type].name, [*batch, *tensor.dims])
