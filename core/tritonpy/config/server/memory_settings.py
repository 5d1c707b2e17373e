"""The section `memory` of server.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.byte_size import ByteSize

HOST = "cpu"
"""The name of the host's memory, including pinned memory.

The name of a GPU's memory is its number.
"""


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory budget of models, and the models that are loaded on first request."""

    budget: Annotated[
        ByteSize, Meta(ge=0, description="Memory of all models together, on the host and on GPUs; 0: no limit.")
    ] = 0
    devices: Annotated[
        dict[str, Annotated[ByteSize, Meta(gt=0)]],
        Meta(description="The same for one device: cpu, or the number of a GPU."),
    ] = {}
    lazy: Annotated[
        list[str],
        Meta(
            description="Models (patterns with * and ?) that load at their first request; a model's configuration overrides it."
        ),
    ] = []
    pinned: Annotated[
        list[str], Meta(description="Models (patterns) that are never unloaded for others once they are loaded.")
    ] = []
    first_request: Annotated[
        Literal["wait", "refuse"],
        Meta(
            description="wait: a request waits until its model is loaded; refuse: it fails at once with a retry time."
        ),
    ] = "wait"
    wait_s: Annotated[
        float, Meta(gt=0, description="Seconds that a request waits for its model, and a lazy load for memory.")
    ] = 60
    retry_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds until a failed load is retried; doubled after each failure, up to a minute.",
        ),
    ] = 1

    @property
    def limited(self) -> bool:
        """Whether the budget has any limit."""
        return bool(self.budget or self.devices)


def memory_problems(settings: MemorySettings) -> Iterator[ConfigProblem]:
    """Yield problems of the device names."""
    for device in settings.devices:
        if device != HOST and not device.isdecimal():
            yield ConfigProblem(f"memory.devices.{device}", f"expects '{HOST}' or the number of a GPU, got '{device}'")
