"""What tritonclient's inputs and outputs say of shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy.types import RegionSlice


def region_of(parameters: Mapping[str, Any]) -> RegionSlice | None:
    """Return the region that the parameters of a tensor name, as values (HTTP) or as messages (gRPC); None where they name none."""
    if "shared_memory_region" not in parameters:
        return None
    name = parameters["shared_memory_region"]
    offset, byte_size = (_number(parameters, f"shared_memory_{what}") for what in ("offset", "byte_size"))
    return RegionSlice(name if isinstance(name, str) else name.string_param, offset, byte_size)


def _number(parameters: Mapping[str, Any], key: str) -> int:
    value = parameters.get(key, 0)
    return value if isinstance(value, int) else int(value.int64_param)
