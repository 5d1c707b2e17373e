"""Parameters of tensors in shared memory."""

from __future__ import annotations

from tritonpy import Internal
from tritonpy.frontend import RegionSlice
from tritonpy_http_api.header import InputParameters, OutputParameters
from tritonpy_http_api.json_document import as_uint, with_prefix


def region_slice(name: str, given: InputParameters | OutputParameters) -> RegionSlice:
    """Return the slice of region `name` that holds a tensor.

    Raises Internal for numbers beyond 64 bits.
    """
    offset = _unsigned("shared_memory_offset", given.shared_memory_offset)
    return RegionSlice(
        name, offset, _unsigned("shared_memory_byte_size", given.shared_memory_byte_size)
    )


def _unsigned(key: str, value: int) -> int:
    try:
        return as_uint(value)
    except Internal as error:
        raise with_prefix(f"Unable to parse '{key}'", error) from None
