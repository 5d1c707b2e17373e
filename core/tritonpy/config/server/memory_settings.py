"""The section `memory` of server.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.byte_size import ByteSize

HOST = "cpu"
"""How the host's memory is called, pinned memory included; that of a GPU has its number."""


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much memory models may hold, and which of them are loaded only when they are asked for."""

    budget: Annotated[
        ByteSize, Meta(ge=0, description="What all models together may hold, on the host and on GPUs; 0 for no bound.")
    ] = 0
    devices: Annotated[
        dict[str, Annotated[ByteSize, Meta(gt=0)]],
        Meta(description="The same for one device: cpu, or the number of a GPU."),
    ] = {}
    lazy: Annotated[
        list[str],
        Meta(
            description="Models (patterns with * and ?) that load at their first request, unless their configuration says otherwise."
        ),
    ] = []
    pinned: Annotated[
        list[str], Meta(description="Models (patterns) that are never unloaded to make room, once they are loaded.")
    ] = []
    first_request: Annotated[
        Literal["wait", "refuse"],
        Meta(description="wait: a request waits while its model is loaded; refuse: it is told at once to come again."),
    ] = "wait"
    wait_s: Annotated[
        float, Meta(gt=0, description="Seconds that a request waits for its model, and a lazy load for room.")
    ] = 60
    retry_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds until a load that failed is tried again; twice as long after each failure, up to a minute.",
        ),
    ] = 1

    @property
    def limited(self) -> bool:
        """Whether there is any bound."""
        return bool(self.budget or self.devices)


def memory_problems(settings: MemorySettings) -> Iterator[ConfigProblem]:
    """Yield what is wrong with the names of devices."""
    for device in settings.devices:
        if device != HOST and not device.isdecimal():
            yield ConfigProblem(f"memory.devices.{device}", f"expects '{HOST}' or the number of a GPU, got '{device}'")
