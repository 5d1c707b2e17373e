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
    """Which GPUs are used, how full they may be, and how much memory is kept for what travels to them and back. Devices count from 0."""

    pinned_memory_pool_byte_size: Annotated[
        ByteSize,
        Meta(
            ge=0, description="Host memory that GPUs copy from and to at full speed; taken when a model needs it first."
        ),
    ] = PINNED_POOL
    cuda_memory_pool_byte_size: Annotated[
        dict[str, Annotated[ByteSize, Meta(ge=0)]],
        Meta(description="By GPU, memory of its own for inputs and outputs; 64 MiB where nothing is said."),
    ] = {}
    model_load_gpu_limit: Annotated[
        dict[str, float],
        Meta(
            description="By GPU, which part of its memory may be in use, by whomever, when a model was loaded; more fails the load."
        ),
    ] = {}
    min_supported_compute_capability: Annotated[
        float, Meta(ge=0, description="GPUs of a lower CUDA compute capability are not used.")
    ] = MIN_COMPUTE_CAPABILITY

    def cuda_pool(self, gpu: int) -> int:
        """Return the size of a GPU's pool, in bytes."""
        return self.cuda_memory_pool_byte_size.get(str(gpu), CUDA_POOL)

    def gpu_limits(self) -> dict[int, float]:
        """Return the parts, from 0 to 1, of the GPUs that have a limit."""
        return {int(gpu): part for gpu, part in self.model_load_gpu_limit.items()}


def device_problems(settings: DeviceSettings) -> Iterator[ConfigProblem]:
    """Yield what is wrong with the devices and the limits, in Triton's words."""
    for section in ("cuda_memory_pool_byte_size", "model_load_gpu_limit"):
        given: Mapping[str, float] = getattr(settings, section)
        for device in given:
            if not device.isdecimal():
                yield ConfigProblem(f"devices.{section}.{device}", f"expects device ID >= 0, got {device}")
    for device, part in settings.model_load_gpu_limit.items():
        if not 0 <= part <= 1:
            text = f"expects limit fraction to be in range [0.0, 1.0], got {part:f}"
            yield ConfigProblem(f"devices.model_load_gpu_limit.{device}", text)
