"""The parameters of a tensor that lies in shared memory."""

from __future__ import annotations

from tritonpy import Internal, RegionSlice
from tritonpy_frontend_http.header import InputParameters, OutputParameters
from tritonpy_frontend_http.json_document import as_uint, prefixed


def region_slice(name: str, given: InputParameters | OutputParameters) -> RegionSlice:
    """Return where in the region `name` a tensor lies. Raises Internal for a number that no 64 bits hold."""
    offset = _unsigned("shared_memory_offset", given.shared_memory_offset)
    return RegionSlice(name, offset, _unsigned("shared_memory_byte_size", given.shared_memory_byte_size))


def _unsigned(key: str, value: int) -> int:
    try:
        return as_uint(value)
    except Internal as error:
        raise prefixed(f"Unable to parse '{key}'", error) from None
