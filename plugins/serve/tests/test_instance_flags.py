from __future__ import annotations

import pytest

from tritonpy_config.server import decode_server_config
from tritonpy_serve.overlay import Origins, overlay, read_flags
from tritonpy_serve.triton_flags import TRITON_FLAGS, host_setting, resource


def configured(**given):
    flags = {name.replace("_", "-"): texts for name, texts in given.items()}
    return decode_server_config(overlay(None, read_flags(TRITON_FLAGS, flags), Origins()))


def test_a_resource_of_every_device_and_of_one():
    config = configured(rate_limit=["EXECUTION_COUNT"], rate_limit_resource=["R1:4", "a.b:2:1"])
    assert config.rate_limit.mode == "execution_count"
    assert config.rate_limit.resources == {"R1": 4, "a.b:1": 2}


def test_a_repeated_resource_has_its_smallest_count_as_in_triton():
    given = ["R1:4", "R2:1", "R1:2", "R1:3", "R1:9:0"]
    config = configured(rate_limit=["execution_count"], rate_limit_resource=given)
    assert config.rate_limit.resources == {"R1": 2, "R2": 1, "R1:0": 9}


@pytest.mark.parametrize("text", ["R1", "R1:4:0:1", ""])
def test_an_invalid_resource_is_refused_in_triton_s_words(text):
    with pytest.raises(
        ValueError,
        match="--rate-limit-resource option format is '<resource_name>:<count>:<device>'",
    ):
        resource(text)


def test_a_count_is_a_whole_number():
    with pytest.raises(ValueError, match="Got many"):
        resource("R1:many")


def test_the_settings_of_a_host_policy():
    policies = configured(
        host_policy=["cpu,cpu-cores=0-1,3-4", "cpu,numa-node=0", "my.own,numa-node=1"]
    ).host_policies
    assert (policies["cpu"].cpu_cores, policies["cpu"].numa_node) == ("0-1,3-4", 0)
    assert (policies["my.own"].cpu_cores, policies["my.own"].numa_node) == ("", 1)


@pytest.mark.parametrize(
    "text", ["cpu", "cpu,numa-node", "cpu,=0", ",numa-node=0", "cpu,numa-node="]
)
def test_a_policy_without_setting_or_value_is_refused_in_triton_s_words(text):
    with pytest.raises(ValueError, match="--host-policy option format is "):
        host_setting(text)


def test_another_setting_is_refused_in_triton_s_words():
    with pytest.raises(
        ValueError,
        match="Unsupported host policy setting 'nice' is specified, supported settings are",
    ):
        host_setting("cpu,nice=3")
