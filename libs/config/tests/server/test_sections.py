from __future__ import annotations

import pytest

from tritonpy_config.server import InvalidServerConfig, decode_server_config
from tritonpy_config.server.sections import (
    DEFAULT_QUANTILES,
    DeviceSettings,
    MemorySettings,
    parse_cores,
    parse_quantiles,
    parse_resource,
)

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
    assert (settings.pinned_memory_pool_byte_size, settings.min_supported_compute_capability) == (
        256 * MIB,
        7.5,
    )
    assert (settings.cuda_pool(0), settings.gpu_limits()) == (64 * MIB, {})


def test_each_gpu_has_its_own_settings():
    settings = decoded(
        cuda_memory_pool_byte_size={0: "1MiB", "2": 0}, model_load_gpu_limit={1: 0.5, "3": 1}
    )
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


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("0-3", {0, 1, 2, 3}),
        ("0-1,4-5", {0, 1, 4, 5}),
        ("2", {2}),
        ("0,2-3", {0, 2, 3}),
        ("0-0, 7", {0, 7}),
    ],
)
def test_ranges_and_single_cores(text, cores):
    assert parse_cores(text) == cores


@pytest.mark.parametrize("text", ["", "a", "0-", "-3", "0-3-5", "0,", "1.5"])
def test_an_invalid_range_is_refused_with_tritons_text(text):
    with pytest.raises(ValueError, match="format is '<lower_cpu_core_id>-<upper_cpu_core_id>'"):
        parse_cores(text)


def test_a_reversed_range_has_no_cores():
    with pytest.raises(ValueError, match="names no core"):
        parse_cores("3-1")


def test_quantiles_are_parsed_in_order():
    assert list(parse_quantiles("0.9:0.01,0.5:0.05").items()) == [(0.9, 0.01), (0.5, 0.05)]
    assert len(parse_quantiles(DEFAULT_QUANTILES)) == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.5",
        "0.5:",
        "half:0.1",
        "0.5:0.1,",
        "1:0.1",
        "0:0.1",
        "0.5:0",
        "0.5:1",
        "0.5:0.1 0.9:0.1",
        "nan:0.1",
    ],
)
def test_an_invalid_list_is_refused(text):
    with pytest.raises(ValueError, match="is not <quantile>:<error>"):
        parse_quantiles(text)


def test_wrong_quantiles_are_reported_with_their_key():
    with pytest.raises(InvalidServerConfig) as caught:
        decode_server_config({"latencies": {"quantiles": "0.5"}})
    (problem,) = caught.value.problems
    assert (problem.path, problem.text) == (
        "latencies.quantiles",
        "'0.5' is not <quantile>:<error>, two numbers between 0 and 1",
    )


def test_there_is_no_limit_by_default():
    assert not decode_server_config({}).memory.limited


def test_sizes_are_numbers_or_texts():
    memory = decode_server_config(
        {"memory": {"budget": "1GiB", "devices": {"cpu": 5, "1": "2MiB"}}}
    ).memory
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


@pytest.mark.parametrize(
    ("key", "found"), [("R1", ("R1", None)), ("R1:0", ("R1", 0)), ("a.b:12", ("a.b", 12))]
)
def test_a_key_names_a_resource_and_optionally_a_device(key, found):
    assert parse_resource(key) == found


@pytest.mark.parametrize("key", ["", ":1", "R1:", "R1:x", "R1:1:2", "R1:-1"])
def test_a_key_without_a_resource_is_refused(key):
    with pytest.raises(ValueError, match="<resource_name>"):
        parse_resource(key)
