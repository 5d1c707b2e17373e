from __future__ import annotations

import pytest

from tritonpy import PluginError, Transport, hookimpl
from tritonpy.plugins import make_plugin_manager
from tritonpy.plugins.frontend_classes import frontend_classes


class Own:
    """A frontend with its own listener."""


class Carried:
    """The same frontend on a transport."""


class Wire(Transport):
    carries = {"grpc": f"{__name__}:Carried"}  # noqa: RUF012


class Plugin:
    @hookimpl
    def tritonpy_transports(self):
        return {"wire": Wire}

    @hookimpl
    def tritonpy_frontends(self):
        return {"http": Own, "grpc": Own}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Plugin(), "wires")
    return manager


@pytest.mark.parametrize(
    ("transports", "name", "expected"), [([], "grpc", "Own"), (["wire"], "grpc", "Carried"), (["wire"], "http", "Own")]
)
def test_a_frontend_has_its_own_class_unless_the_transport_carries_it(manager, transports, name, expected):
    assert frontend_classes(manager, transports)(name).__name__ == expected


def test_missing_plugins_are_named(manager):
    with pytest.raises(PluginError, match="transport 'boat'"):
        frontend_classes(manager, ["boat"])
    with pytest.raises(PluginError, match="frontend 'pigeon'"):
        frontend_classes(manager, ["wire"])("pigeon")
