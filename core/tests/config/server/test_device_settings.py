from __future__ import annotations

import pytest

from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.config.server.device_settings import DeviceSettings

MIB = 1 << 20


def decoded(**devices):
    return decode_server_config({"devices": devices}).devices


def refusal(**devices):
    with pytest.raises(InvalidServerConfig) as caught:
        decoded(**devices)
    return [str(problem) for problem in caught.value.problems]


def test_the_defaults_are_triton_s():
    settings = decoded()
    assert settings == DeviceSettings()
    assert (settings.pinned_memory_pool_byte_size, settings.min_supported_compute_capability) == (256 * MIB, 7.5)
    assert (settings.cuda_pool(0), settings.gpu_limits()) == (64 * MIB, {})


def test_each_gpu_has_its_own_settings():
    settings = decoded(cuda_memory_pool_byte_size={0: "1MiB", "2": 0}, model_load_gpu_limit={1: 0.5, "3": 1})
    assert [settings.cuda_pool(gpu) for gpu in range(3)] == [MIB, 64 * MIB, 0]
    assert settings.gpu_limits() == {1: 0.5, 3: 1.0}


@pytest.mark.parametrize("part", [-0.1, 1.5])
def test_a_limit_is_a_fraction(part):
    assert refusal(model_load_gpu_limit={0: part}) == [
        f"devices.model_load_gpu_limit.0: expects limit fraction to be in range [0.0, 1.0], got {part:f}"
    ]


def test_a_device_is_a_number_from_0():
    assert refusal(model_load_gpu_limit={-1: 0.5}, cuda_memory_pool_byte_size={"gpu": 1}) == [
        "devices.cuda_memory_pool_byte_size.gpu: expects device ID >= 0, got gpu",
        "devices.model_load_gpu_limit.-1: expects device ID >= 0, got -1",
    ]


@pytest.mark.parametrize(
    "devices",
    [
        {"pinned_memory_pool_byte_size": -1},
        {"pinned_memory_pool_byte_size": "much"},
        {"cuda_memory_pool_byte_size": {"0": -1}},
        {"model_load_gpu_limit": {"0": "half"}},
        {"min_supported_compute_capability": -1},
        {"pool": 1},
    ],
)
def test_an_invalid_size_or_number_is_refused(devices):
    assert len(refusal(**devices)) == 1
