from __future__ import annotations

import pytest

from tritonpy import Options, ProcessTransport, StartupError, Transport, hookimpl
from tritonpy.cli.overlay import Origins
from tritonpy.cli.plugin_options import check_plugin_options
from tritonpy.cli.transport import launch_transport, process_transport, with_written_options
from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.config.server.server_config import ServerConfig
from tritonpy.plugins import make_plugin_manager


class ShipOptions(Options, frozen=True):
    speed: int = 1


class PortOptions(Options, frozen=True):
    port: int = 8000
    host: str | None = None


class Port:
    Options = PortOptions


class Ship(ProcessTransport):
    Options = ShipOptions
    carries = {"http": "x:X", "grpc": "x:X"}  # noqa: RUF012
    shares_ports = True
    launched = None

    def run(self, launch):
        Ship.launched = self.options, launch
        return 7


class WirePort:
    Options = PortOptions


class Wire(Transport):
    """Carries gRPC in the server's process."""

    carries = {"grpc": f"{__name__}:WirePort"}  # noqa: RUF012


class Plugin:
    @hookimpl
    def tritonpy_transports(self):
        return {"ship": Ship, "wire": Wire}

    @hookimpl
    def tritonpy_frontends(self):
        return {"http": Port, "grpc": Port, "metrics": Port}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Plugin(), "ships")
    return manager


def test_a_name_alone_has_no_options_and_none_is_no_transport():
    assert decode_server_config({"transport": "ship"}).transport == {"ship": {}}
    assert decode_server_config({"transport": "none"}) == ServerConfig()
    assert decode_server_config({"transport": {"ship": {"speed": 2}}}).transport == {"ship": {"speed": 2}}


def test_there_is_one_transport_at_most():
    with pytest.raises(InvalidServerConfig, match="transport: there can be one transport"):
        decode_server_config({"transport": {"ship": {}, "train": {}}})


def test_the_command_line_keeps_the_options_that_the_file_has_for_its_transport():
    file, origins = {"transport": {"ship": {"speed": 2}}}, Origins(flags={"transport": "transport"})
    assert with_written_options({"transport": "ship"}, file, origins) == file
    assert origins.flags == {}
    assert with_written_options({"transport": "none"}, file, origins) == {"transport": "none"}
    assert with_written_options({"transport": "ship"}, None, origins) == {"transport": "ship"}


def test_the_transport_gets_its_own_options_and_those_of_the_frontends_that_it_carries(manager):
    raw = {"transport": {"ship": {"speed": 3}}, "frontends": {"http": {"port": 1}, "grpc": False}, "host": "::1"}
    config = decode_server_config(raw)
    assert process_transport(config, manager) is Ship
    assert launch_transport(Ship, config, manager) == 7
    options, launch = Ship.launched
    assert options == ShipOptions(3)
    assert launch.frontends == {"http": PortOptions(1)}
    assert (launch.host, launch.exit_timeout_s) == ("::1", 30)
    assert b'"ship":{"speed":3}' in launch.document


def test_carried_frontends_may_share_a_port_and_others_may_not(manager):
    shared = {"http": {"port": 1}, "grpc": {"port": 1}, "metrics": {"port": 2}}
    check_plugin_options(decode_server_config({"transport": "ship", "frontends": shared}), manager)
    with pytest.raises(StartupError, match="at the same address and port"):
        check_plugin_options(decode_server_config({"frontends": shared}), manager)
    everything = {name: {"port": 1} for name in shared}
    with pytest.raises(StartupError, match="metrics requests"):
        check_plugin_options(decode_server_config({"transport": "ship", "frontends": everything}), manager)


def test_wrong_options_of_a_transport_and_one_that_is_not_installed_are_named(manager):
    for transport, text in (({"ship": {"speed": "x"}}, "transport.ship.speed"), ("boat", "transport 'boat'")):
        with pytest.raises(InvalidServerConfig, match=text):
            check_plugin_options(decode_server_config({"transport": transport}), manager)


def test_a_transport_without_a_process_of_its_own_launches_none(manager):
    assert process_transport(decode_server_config({"transport": "wire"}), manager) is None
    assert process_transport(ServerConfig(), manager) is None


def test_frontends_that_have_processes_of_their_own_go_with_a_transport_that_has_none(manager):
    raw = {"frontend_processes": 2, "frontends": {"http": False, "metrics": False}}
    check_plugin_options(decode_server_config({**raw, "transport": "wire"}), manager)
    with pytest.raises(
        InvalidServerConfig, match="frontend_processes: the transport 'ship' carries the frontends in one process"
    ):
        check_plugin_options(decode_server_config({**raw, "transport": "ship"}), manager)


def test_options_are_checked_against_the_class_that_carries_a_frontend(manager):
    raw = {"transport": "wire", "frontends": {"grpc": {"port": 1}, "metrics": {"port": 1}, "http": False}}
    with pytest.raises(StartupError, match="at the same address and port"):
        check_plugin_options(decode_server_config(raw), manager)
