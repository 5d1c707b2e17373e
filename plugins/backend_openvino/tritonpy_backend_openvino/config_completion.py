"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy_backend_kit import config_completion

if TYPE_CHECKING:
    from tritonpy_backend_openvino.signature import Signature, TensorInfo
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput

# Image clients read the format to lay out their pixels.
_FORMATS = {"[N,C,H,W]": "FORMAT_NCHW", "[N,H,W,C]": "FORMAT_NHWC"}


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in.

    A model that supports batching gets `default_max_batch_size`, but at least 1, if its
    `max_batch_size` is 0 or not set. Raises `InvalidArgument` for a tensor whose number of
    dimensions is dynamic.
    """
    result = config_completion.complete_config(
        config,
        signature.inputs,
        signature.outputs,
        can_batch=signature.can_batch,
        max_batch_size=max(default_max_batch_size, 1),
    )
    if result.max_batch_size > 0 and not (config.input or config.batch_input):
        for field in result.input:
            _set_format(field, signature.inputs[field.name])
    return result


def _set_format(field: ModelInput, info: TensorInfo) -> None:
    if len(field.dims) == 3 and info.layout in _FORMATS:
        field.format = getattr(field, _FORMATS[info.layout])
