from __future__ import annotations

import pytest

from tritonpy.cli.memory_flags import MEMORY_FLAGS, device_size
from tritonpy.cli.overlay import BadFlags, Origins, overlay, read_flags
from tritonpy.config.server import decode_server_config


def configured(**flags):
    return decode_server_config(overlay({}, read_flags(MEMORY_FLAGS, flags), Origins())).memory


def test_flags_set_the_section_memory():
    memory = configured(
        **{
            "memory-budget": ["8GiB"],
            "memory-limit": ["cpu:4GiB", "0:20GiB"],
            "lazy-model": ["a*", "b"],
            "pinned-model": ["big"],
            "first-request": ["refuse"],
        }
    )
    assert memory.budget == 8 << 30
    assert memory.devices == {"cpu": 4 << 30, "0": 20 << 30}
    assert (memory.lazy, memory.pinned, memory.first_request) == (["a*", "b"], ["big"], "refuse")


@pytest.mark.parametrize("text", ["20GiB", "0:", ":1"])
def test_a_limit_names_device_and_size(text):
    with pytest.raises(ValueError, match="DEVICE:SIZE"):
        device_size(text)


def test_an_invalid_flag_is_reported():
    with pytest.raises(BadFlags, match="first-request"):
        configured(**{"first-request": ["maybe"]})
