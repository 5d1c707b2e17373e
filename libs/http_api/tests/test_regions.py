from __future__ import annotations

import pytest

from tritonpy import Internal
from tritonpy.frontend import RegionSlice
from tritonpy_http_api.header import InputParameters, OutputParameters
from tritonpy_http_api.regions import region_slice


@pytest.mark.parametrize("kind", [InputParameters, OutputParameters])
def test_region_parameters_become_a_slice(kind):
    given = kind(
        shared_memory_region="r", shared_memory_offset=2**64 - 1, shared_memory_byte_size=8
    )
    assert region_slice("r", given) == RegionSlice("r", 2**64 - 1, 8)


def test_numbers_above_64_bits_are_refused():
    with pytest.raises(Internal) as refusal:
        region_slice("r", InputParameters(shared_memory_offset=2**64))
    assert refusal.value.message == (
        "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer"
    )
