"""Model metadata for clients, from the configuration. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tritonpy.api.engine import ModelMetadata, TensorMetadata
from tritonpy.types import DATATYPE_OF_NUMBER

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def model_metadata(config: ModelConfig, versions: Iterable[int]) -> ModelMetadata:
    """Return name, versions, platform and tensors; shapes include the batch dimension.

    The platform is the backend's name if the configuration has no platform.
    """
    return ModelMetadata(
        name=config.name,
        versions=[str(version) for version in versions],
        platform=config.platform or config.backend,
        inputs=[_tensor(config, tensor) for tensor in config.input],
        outputs=[_tensor(config, tensor) for tensor in config.output],
    )


def _tensor(config: ModelConfig, tensor: ModelInput | ModelOutput) -> TensorMetadata:
    # Shape tensors have no batch dimension, but Triton's clients remove one from the metadata.
    batch = [-1] if config.max_batch_size > 0 else []
    return TensorMetadata(tensor.name, DATATYPE_OF_NUMBER[tensor.data_type].name, [*batch, *tensor.dims])
