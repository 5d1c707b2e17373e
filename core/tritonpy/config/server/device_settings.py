"""The section `devices` of server.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.byte_size import ByteSize

PINNED_POOL = 1 << 28
CUDA_POOL = 1 << 26
MIN_COMPUTE_CAPABILITY = 7.5


class DeviceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The GPUs that are used, their limits, and the memory pools for inputs and outputs.

    Devices count from 0.
    """

    pinned_memory_pool_byte_size: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description="Pinned host memory, which GPUs copy at full speed; allocated when a model first needs it.",
        ),
    ] = PINNED_POOL
    cuda_memory_pool_byte_size: Annotated[
        dict[str, Annotated[ByteSize, Meta(ge=0)]],
        Meta(description="By GPU: bytes of its memory pool for inputs and outputs; default 64 MiB."),
    ] = {}
    model_load_gpu_limit: Annotated[
        dict[str, float],
        Meta(
            description="By GPU: fraction of its memory that all processes may use after a model is loaded; more fails the load."
        ),
    ] = {}
    min_supported_compute_capability: Annotated[
        float, Meta(ge=0, description="Minimum CUDA compute capability: other GPUs are not used.")
    ] = MIN_COMPUTE_CAPABILITY

    def cuda_pool(self, gpu: int) -> int:
        """Return the size of a GPU's pool in bytes."""
        return self.cuda_memory_pool_byte_size.get(str(gpu), CUDA_POOL)

    def gpu_limits(self) -> dict[int, float]:
        """Return the limits of GPUs as fractions from 0 to 1."""
        return {int(gpu): part for gpu, part in self.model_load_gpu_limit.items()}


def device_problems(settings: DeviceSettings) -> Iterator[ConfigProblem]:
    """Yield problems of the devices and limits, with Triton's texts."""
    for section in ("cuda_memory_pool_byte_size", "model_load_gpu_limit"):
        given: Mapping[str, float] = getattr(settings, section)
        for device in given:
            if not device.isdecimal():
                yield ConfigProblem(f"devices.{section}.{device}", f"expects device ID >= 0, got {device}")
    for device, part in settings.model_load_gpu_limit.items():
        if not 0 <= part <= 1:
            text = f"expects limit fraction to be in range [0.0, 1.0], got {part:f}"
            yield ConfigProblem(f"devices.model_load_gpu_limit.{device}", text)
