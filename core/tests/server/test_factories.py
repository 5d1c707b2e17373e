from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from core.tests.toys.device import ToyDevice
from core.tests.toys.doubler import Doubler
from core.tests.toys.serving import ToyPlugin, config_of, serving, toy_plugins
from tritonpy import Options
from tritonpy.api.device import NoDevice
from tritonpy.hookspecs import hookimpl
from tritonpy.plugins import make_plugin_manager
from tritonpy.repository import Repository, builtin
from tritonpy.server.factories import cache_folder, make_gpus, make_tracing, open_repositories
from tritonpy.tracing import TraceSink
from tritonpy_config.server import InvalidServerConfig, ServerConfig, decode_server_config
from tritonpy_config.server.sections import TraceConfig
from tritonpy_metrics import CustomMetrics
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_types.errors import PluginError, TritonError


class ToyRepository(Repository):
    class Options(Options, frozen=True):
        speed: Annotated[int, Meta(description="x")] = 0
        color: Annotated[str, Meta(description="x")] = ""

    def scan(self):
        return {}


class CatchAllRepository(ToyRepository):
    """Registered for all other schemes."""


class Plugin:
    def __init__(self, **repositories):
        self.repositories = repositories

    @hookimpl
    def tritonpy_repositories(self):
        return self.repositories


def opened(plugin, *repositories, **options):
    manager = make_plugin_manager(discover=False)
    for each in (builtin, plugin):
        manager.register(each, type(each).__name__ if each is plugin else "core")
    config = decode_server_config(
        {"repositories": list(repositories), "repository_options": options}
    )
    return open_repositories(config, manager)


def test_the_scheme_chooses_the_class_and_no_scheme_is_a_folder():
    found = opened(
        Plugin(toy=ToyRepository), {"url": "toy://a"}, {"url": "/models"}, {"url": "file:///models"}
    )
    assert [type(each).__name__ for each in found] == [
        "ToyRepository",
        "LocalRepository",
        "LocalRepository",
    ]
    assert [each.context.url for each in found] == ["toy://a", "/models", "file:///models"]


def test_unregistered_schemes_go_to_the_catch_all_repository():
    plugin = Plugin(**{"toy": ToyRepository, "*": CatchAllRepository})
    assert [type(each) for each in opened(plugin, {"url": "toy://a"}, {"url": "other://a"})] == [
        ToyRepository,
        CatchAllRepository,
    ]


def test_without_a_catch_all_repository_an_unknown_scheme_is_rejected():
    with pytest.raises(
        PluginError, match="no plugin provides model repository 'other', installed are: file, toy"
    ):
        opened(Plugin(toy=ToyRepository), {"url": "other://a"})


def test_options_of_a_repository_override_those_of_its_scheme():
    first, second = opened(
        Plugin(toy=ToyRepository),
        {"url": "toy://a", "options": {"speed": 2}},
        {"url": "toy://b"},
        toy={"speed": 1, "color": "red"},
    )
    assert (first.options.speed, first.options.color) == (2, "red")
    assert (second.options.speed, second.options.color) == (1, "red")


@pytest.mark.parametrize(
    ("repository", "options", "where"),
    [
        ({"url": "toy://a", "options": {"sped": 2}}, {}, r"repositories\[0\].options"),
        ({"url": "toy://a"}, {"sped": 2}, "repository_options.toy"),
    ],
)
def test_an_invalid_option_is_reported_with_its_path(repository, options, where):
    with pytest.raises(InvalidServerConfig, match=where):
        opened(Plugin(toy=ToyRepository), repository, toy=options)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/tritonpy")),
        ({"HOME": "/h"}, Path("/h/.cache/tritonpy")),
    ],
)
def test_the_cache_is_the_user_s(environment, folder):
    assert cache_folder(environment) == folder


def test_without_a_home_folder_the_cache_is_per_user():
    assert cache_folder({}).name.startswith("tritonpy-")


class ToyOptions(Options, frozen=True):
    colour: str = "red"


class ToySink(TraceSink):
    Options = ToyOptions

    def public_options(self):
        return {"colour": self.options.colour}

    def take(self, family):
        """Ignore the family."""


class SinkPlugin:
    @staticmethod
    @hookimpl
    def tritonpy_trace_sinks():
        return {"toy": ToySink}


@pytest.fixture
def plugins():
    manager = make_plugin_manager(discover=False)
    manager.register(SinkPlugin, "toys")
    return manager


def test_the_default_writes_files_and_traces_nothing():
    tracing = make_tracing(TraceConfig(), make_plugin_manager())
    settings = tracing.settings()
    assert (settings.mode, settings.level, settings.rate, settings.count) == (
        "triton",
        [],
        1000,
        -1,
    )
    assert not tracing.active


def test_options_of_the_mode_are_decoded(tmp_path):
    modes = {"triton": {"file": str(tmp_path / "t"), "log-frequency": "7"}}
    tracing = make_tracing(
        TraceConfig(level=["TENSORS"], rate=2, modes=modes), make_plugin_manager()
    )
    settings = tracing.settings()
    assert (settings.file, settings.log_frequency, settings.level) == (
        str(tmp_path / "t"),
        7,
        ["TENSORS"],
    )
    assert tracing.active


def test_off_overrides_other_levels(tmp_path):
    modes = {"triton": {"file": str(tmp_path / "t")}}
    assert not make_tracing(
        TraceConfig(level=["TENSORS", "OFF"], modes=modes), make_plugin_manager()
    ).active


def test_a_plugin_provides_a_mode(plugins):
    config = TraceConfig(
        mode="toy", level=["TIMESTAMPS"], modes={"toy": {"colour": "blue"}, "other": {"x": 1}}
    )
    tracing = make_tracing(config, plugins)
    assert tracing.settings().options == {"colour": "blue"}
    assert tracing.active


@pytest.mark.parametrize(
    ("config", "error", "text"),
    [
        (
            TraceConfig(mode="toy", modes={"toy": {"size": 1}}),
            InvalidServerConfig,
            "trace.modes.toy.size",
        ),
        (TraceConfig(mode="nobody"), PluginError, "nobody"),
    ],
)
def test_invalid_settings_are_named(plugins, config, error, text):
    with pytest.raises(error, match=text):
        make_tracing(config, plugins)


def test_a_mode_that_is_not_installed_names_its_package(plugins):
    with pytest.raises(PluginError, match="tritonpy-trace-otel"):
        make_tracing(TraceConfig(mode="opentelemetry"), plugins)


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


@pytest.mark.parametrize(
    "devices", [{}, {"cuda_memory_pool_byte_size": {0: 8}}, {"model_load_gpu_limit": {0: 0.5}}]
)
def test_without_a_plugin_settings_have_no_effect_and_name_the_package(
    devices: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    gpus = make_gpus(config(**devices), toy_plugins(), CustomMetrics())
    assert (type(gpus), gpus.ids) == (NoDevice, [])
    assert ("devices has no effect: no plugin provides device 'cuda'" in caplog.text) is bool(
        devices
    )
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
