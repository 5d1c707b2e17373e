from __future__ import annotations

import pytest

from tritonpy import Options, TraceSink, hookimpl
from tritonpy.config.server import InvalidServerConfig
from tritonpy.config.server.trace_config import TraceConfig
from tritonpy.errors import PluginError
from tritonpy.plugins import make_plugin_manager
from tritonpy.tracing.setup import make_tracing


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
