from __future__ import annotations

import logging

import pytest

from core.tests.toys.device import ToyDevice
from core.tests.toys.doubler import Doubler
from core.tests.toys.serving import ToyPlugin, config_of, serving, toy_plugins
from tritonpy.api.device import NoDevice
from tritonpy.config.server import ServerConfig, decode_server_config
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.errors import TritonError
from tritonpy.factories import make_gpus
from tritonpy.hookspecs import hookimpl
from tritonpy_testing.model_repository import ModelRepository


class DevicePlugin:
    @hookimpl
    def tritonpy_devices(self) -> dict[str, type[ToyDevice]]:
        return {"cuda": ToyDevice}


def config(**devices: object) -> ServerConfig:
    return decode_server_config({"repositories": [{"url": "models"}], "devices": devices})


def test_gpus_are_those_of_the_registered_device_with_the_settings() -> None:
    metrics = CustomMetrics()
    gpus = make_gpus(config(pinned_memory_pool_byte_size=8), toy_plugins(DevicePlugin()), metrics)
    assert isinstance(gpus, ToyDevice)
    assert (gpus.ids, gpus.settings.pinned_memory_pool_byte_size) == ([0, 1], 8)
    assert "nv_pinned_memory_pool_total_bytes" in {family.name for family in metrics.snapshot()}


@pytest.mark.parametrize("devices", [{}, {"cuda_memory_pool_byte_size": {0: 8}}, {"model_load_gpu_limit": {0: 0.5}}])
def test_without_a_plugin_settings_have_no_effect_and_name_the_package(
    devices: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    gpus = make_gpus(config(**devices), toy_plugins(), CustomMetrics())
    assert (type(gpus), gpus.ids) == (NoDevice, [])
    assert ("devices has no effect: no plugin provides device 'cuda'" in caplog.text) is bool(devices)
    assert ("tritonpy-device-cuda" in caplog.text) is bool(devices)


def test_a_model_that_asks_for_a_gpu_without_a_plugin_names_the_package(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    model_repository.add("m", config_of("doubler").replace("KIND_CPU", "KIND_GPU"))
    plugins = toy_plugins(ToyPlugin({"doubler": Doubler}))
    with (
        caplog.at_level(logging.WARNING, "tritonpy"),
        serving(model_repository, plugins, control={"mode": "explicit"}) as server,
        pytest.raises(TritonError, match="has kind KIND_GPU but no GPUs are available"),
    ):
        server.engine.load_model("m")
    assert "model 'm' cannot use a GPU: no plugin provides device 'cuda'" in caplog.text
    assert "tritonpy-device-cuda" in caplog.text
