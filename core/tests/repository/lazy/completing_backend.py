"""A backend that adds inputs and outputs to configurations without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy_protos.model_config_pb2 import ModelConfig

from ...toys.hoard import HeldMemory, memory_backend

if TYPE_CHECKING:
    from tritonpy.api.backend import Backend
    from tritonpy.api.contexts import ModelContext


def completing(hoard: HeldMemory) -> type[Backend]:
    """Return the backend; its models use `hoard`."""

    class Completing(memory_backend(hoard)):  # type: ignore[misc]
        @classmethod
        def auto_complete(cls, model: ModelContext) -> ModelConfig:
            config = ModelConfig()
            config.CopyFrom(model.config)
            config.input.add(name="IN", data_type="TYPE_INT32", dims=[1])
            config.output.add(name="OUT", data_type="TYPE_INT32", dims=[1])
            return config

    return Completing
