"""The shared-memory parameters of tritonclient's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy.frontend import RegionSlice


def region_of(parameters: Mapping[str, Any]) -> RegionSlice | None:
    """Return the region in a tensor's parameters, or None if they have none.

    The parameters are values (HTTP) or messages (gRPC).
    """
    if "shared_memory_region" not in parameters:
        return None
    name = parameters["shared_memory_region"]
    offset, byte_size = (
        _number(parameters, f"shared_memory_{part}") for part in ("offset", "byte_size")
    )
    return RegionSlice(name if isinstance(name, str) else name.string_param, offset, byte_size)


def _number(parameters: Mapping[str, Any], key: str) -> int:
    value = parameters.get(key, 0)
    return value if isinstance(value, int) else int(value.int64_param)
