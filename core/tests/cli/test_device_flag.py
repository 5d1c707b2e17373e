from __future__ import annotations

import pytest

from tritonpy.cli.device_flag import device_setting
from tritonpy.cli.flag import integer
from tritonpy.cli.overlay import BadFlags, Origins, overlay, read_flags
from tritonpy.cli.triton_flags import TRITON_FLAGS
from tritonpy.config.server import InvalidServerConfig, decode_server_config


def configured(raw=None, **given):
    flags = {name.replace("_", "-"): texts for name, texts in given.items()}
    return decode_server_config(overlay(raw, read_flags(TRITON_FLAGS, flags), Origins())).devices


def test_settings_are_per_gpu_and_the_last_use_counts():
    devices = configured(
        {"devices": {"cuda_memory_pool_byte_size": {"0": 1, "3": 7}}},
        cuda_memory_pool_byte_size=["0:1024", "1:2048", "0:4096"],
        model_load_gpu_limit=["0:0.5", "1:0.75"],
        pinned_memory_pool_byte_size=["1048576"],
        min_supported_compute_capability=["6.1"],
    )
    assert devices.cuda_memory_pool_byte_size == {"0": 4096, "1": 2048, "3": 7}
    assert devices.gpu_limits() == {0: 0.5, 1: 0.75}
    assert (devices.pinned_memory_pool_byte_size, devices.min_supported_compute_capability) == (1 << 20, 6.1)


def test_a_value_without_a_gpu_is_refused_in_triton_s_words():
    with pytest.raises(
        ValueError, match=r"^Cannot parse pair option due to incorrect number of inputs.--<pair option> "
    ):
        device_setting(integer)("1024")


@pytest.mark.parametrize("text", ["a:1", "0:much", ":1", "0:"])
def test_gpu_and_value_must_be_numbers(text):
    with pytest.raises(BadFlags, match=r'Bad option: "--cuda-memory-pool-byte-size"\.\nInvalid option value\. Got '):
        configured(cuda_memory_pool_byte_size=[text])


@pytest.mark.parametrize(
    ("text", "why"), [("-1:0.5", "expects device ID >= 0, got -1"), ("0:1.5", "range [0.0, 1.0], got 1.500000")]
)
def test_a_limit_is_checked_in_triton_s_words(text, why):
    with pytest.raises(InvalidServerConfig) as refusal:
        configured(model_load_gpu_limit=[text])
    assert why in str(refusal.value)
