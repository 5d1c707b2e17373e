from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from tritonpy import Options, Repository, TraceSink, hookimpl
from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.config.server.sections import TraceConfig
from tritonpy.errors import PluginError
from tritonpy.factories import cache_folder, make_tracing, open_repositories
from tritonpy.plugins import make_plugin_manager
from tritonpy.repository import builtin


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
    config = decode_server_config({"repositories": list(repositories), "repository_options": options})
    return open_repositories(config, manager)


def test_the_scheme_chooses_the_class_and_no_scheme_is_a_folder():
    found = opened(Plugin(toy=ToyRepository), {"url": "toy://a"}, {"url": "/models"}, {"url": "file:///models"})
    assert [type(each).__name__ for each in found] == ["ToyRepository", "LocalRepository", "LocalRepository"]
    assert [each.context.url for each in found] == ["toy://a", "/models", "file:///models"]


def test_unregistered_schemes_go_to_the_catch_all_repository():
    plugin = Plugin(**{"toy": ToyRepository, "*": CatchAllRepository})
    assert [type(each) for each in opened(plugin, {"url": "toy://a"}, {"url": "other://a"})] == [
        ToyRepository,
        CatchAllRepository,
    ]


def test_without_a_catch_all_repository_an_unknown_scheme_is_rejected():
    with pytest.raises(PluginError, match="no plugin provides model repository 'other', installed are: file, toy"):
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


class ToyPlugin:
    @staticmethod
    @hookimpl
    def tritonpy_trace_sinks():
        return {"toy": ToySink}


@pytest.fixture
def plugins():
    manager = make_plugin_manager(discover=False)
    manager.register(ToyPlugin, "toys")
    return manager


def test_the_default_writes_files_and_traces_nothing():
    tracing = make_tracing(TraceConfig(), make_plugin_manager())
    settings = tracing.settings()
    assert (settings.mode, settings.level, settings.rate, settings.count) == ("triton", [], 1000, -1)
    assert not tracing.active


def test_options_of_the_mode_are_decoded(tmp_path):
    modes = {"triton": {"file": str(tmp_path / "t"), "log-frequency": "7"}}
    tracing = make_tracing(TraceConfig(level=["TENSORS"], rate=2, modes=modes), make_plugin_manager())
    settings = tracing.settings()
    assert (settings.file, settings.log_frequency, settings.level) == (str(tmp_path / "t"), 7, ["TENSORS"])
    assert tracing.active


def test_off_overrides_other_levels(tmp_path):
    modes = {"triton": {"file": str(tmp_path / "t")}}
    assert not make_tracing(TraceConfig(level=["TENSORS", "OFF"], modes=modes), make_plugin_manager()).active


def test_a_plugin_provides_a_mode(plugins):
    config = TraceConfig(mode="toy", level=["TIMESTAMPS"], modes={"toy": {"colour": "blue"}, "other": {"x": 1}})
    tracing = make_tracing(config, plugins)
    assert tracing.settings().options == {"colour": "blue"}
    assert tracing.active


@pytest.mark.parametrize(
    ("config", "error", "text"),
    [
        (TraceConfig(mode="toy", modes={"toy": {"size": 1}}), InvalidServerConfig, "trace.modes.toy.size"),
        (TraceConfig(mode="nobody"), PluginError, "nobody"),
    ],
)
def test_invalid_settings_are_named(plugins, config, error, text):
    with pytest.raises(error, match=text):
        make_tracing(config, plugins)


def test_a_mode_that_is_not_installed_names_its_package(plugins):
    with pytest.raises(PluginError, match="tritonpy-trace-otel"):
        make_tracing(TraceConfig(mode="opentelemetry"), plugins)
