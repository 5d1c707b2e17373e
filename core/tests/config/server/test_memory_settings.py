from __future__ import annotations

import pytest

from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.config.server.memory_settings import MemorySettings


def test_there_is_no_limit_by_default():
    assert not decode_server_config({}).memory.limited


def test_sizes_are_numbers_or_texts():
    memory = decode_server_config({"memory": {"budget": "1GiB", "devices": {"cpu": 5, "1": "2MiB"}}}).memory
    assert (memory.budget, memory.devices) == (1 << 30, {"cpu": 5, "1": 2 << 20})
    assert memory.limited
    assert MemorySettings(devices={"0": 1}).limited


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"devices": {"gpu0": 5}}, "memory.devices.gpu0"),
        ({"devices": {"0": 0}}, "memory.devices.0"),
        ({"first_request": "hope"}, "memory.first_request"),
        ({"wait_s": 0}, "memory.wait_s"),
        ({"budget": "much"}, "memory.budget"),
    ],
)
def test_invalid_settings_are_reported(section, path):
    with pytest.raises(InvalidServerConfig, match=path.replace(".", r"\.")):
        decode_server_config({"memory": section})
