from __future__ import annotations

import re
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from tritonpy import Backend, Options, hookimpl
from tritonpy.frontend import Frontend, Transport
from tritonpy.plugins import install_command, make_plugin_manager
from tritonpy.plugins.options import (
    Listener,
    check_plugin_options,
    describe_plugin_options,
    port_collisions,
)
from tritonpy_config.server import ByteSize, InvalidServerConfig, decode_server_config


class PortOptions(Options, frozen=True):
    port: Annotated[int, Meta(ge=0, description="Where to listen.")] = 8000
    host: str | None = None


class SizeOptions(Options, frozen=True):
    key: Annotated[str, Meta(description="A secret.")]
    max_size: ByteSize = 10
    names: list[str] = msgspec.field(default_factory=list)


class HttpToy(Frontend):
    Options = PortOptions


class BackendToy(Backend):
    Options = SizeOptions


class WireOptions(Options, frozen=True):
    speed: int = 1


class Wire(Transport):
    Options = WireOptions
    carries = {"http": f"{__name__}:WireFrontend"}  # noqa: RUF012


class WireFrontendOptions(PortOptions, frozen=True):
    lanes: int = 1


class WireFrontend(Frontend):
    Options = WireFrontendOptions


class Toys:
    @hookimpl
    def tritonpy_frontends(self):
        return {"http": HttpToy, "other": HttpToy}

    @hookimpl
    def tritonpy_backends(self):
        return {"toy": BackendToy}


class Transports:
    @hookimpl
    def tritonpy_transports(self):
        return {"wire": Wire}


class WithPython:
    @hookimpl
    def tritonpy_backends(self):
        return {"python": BackendToy}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Toys(), "toys", "toy-plugins", "7")
    return manager


def check(manager, **raw):
    check_plugin_options(decode_server_config(raw), manager)


def test_options_of_all_plugins_are_checked_at_once(manager):
    with pytest.raises(InvalidServerConfig) as caught:
        check(manager, frontends={"http": {"prt": 1}, "other": {"port": -1}}, backends={"toy": {}})
    assert [str(problem) for problem in caught.value.problems] == [
        "frontends.http.prt: unknown option 'prt'; did you mean 'port'?",
        "frontends.other.port: expected an integer, at least 0; got -1",
        "backends.toy: 'key' is missing: expected text",
    ]


def test_good_options_pass(manager):
    check(
        manager,
        frontends={"http": {"port": 1}, "other": {"port": 2}},
        backends={"toy": {"key": "a", "max-size": "1KiB", "isolation": "process"}},
    )


def test_an_unknown_plugin_name_is_refused(manager):
    with pytest.raises(
        InvalidServerConfig,
        match=r"frontends.othr: no plugin provides frontend 'othr', did you mean 'other'\?",
    ):
        check(manager, frontends={"othr": {}})
    with pytest.raises(
        InvalidServerConfig, match=r"backends\.toi: no plugin provides backend 'toi'"
    ):
        check(manager, backends={"toi": {}})


def test_options_of_a_known_backend_that_is_not_installed_are_allowed(manager):
    check(manager, backends={"tensorrt": {"anything": 1}})


def test_a_misspelled_trace_mode_is_refused_and_options_of_an_unused_one_are_allowed(manager):
    with pytest.raises(
        InvalidServerConfig, match=r"trace\.modes\.trton: no plugin provides trace mode 'trton'"
    ):
        check(manager, trace={"modes": {"trton": {}}})
    check(manager, trace={"modes": {"opentelemetry": {"url": "http://collector"}}})


def test_two_frontends_on_one_port_are_refused_in_tritons_words(manager):
    with pytest.raises(InvalidServerConfig) as caught:
        check(manager, frontends={"other": {}})
    assert (
        "The server cannot listen to HTTP requests and other requests at the same address and port 127.0.0.1:8000"
        in str(caught.value)
    )


def test_invalid_options_of_a_transport_and_missing_transports_are_reported(manager):
    manager.register(Transports(), "transports")
    for transport, text in (
        ({"wire": {"speed": "x"}}, "transport.wire.speed"),
        ("boat", "transport 'boat'"),
    ):
        with pytest.raises(InvalidServerConfig, match=text):
            check(manager, transport=transport)


def test_options_are_checked_against_the_class_that_carries_a_frontend(manager):
    manager.register(Transports(), "transports")
    frontends = {"http": {"lanes": 2}, "other": {"port": 1}}
    check(manager, transport="wire", frontends=frontends)
    with pytest.raises(InvalidServerConfig, match=r"frontends\.http\.lanes"):
        check(manager, frontends=frontends)


def test_ports_collide_on_one_address_only_and_free_ports_never():
    one = Listener("HTTP", "127.0.0.1", 80)
    assert len(port_collisions([one, one, one])) == 3
    assert (
        port_collisions(
            [one, Listener("GRPC", "127.0.0.2", 80), Listener("metrics", "127.0.0.1", 81)]
        )
        == []
    )
    assert port_collisions([Listener("HTTP", "h", 0), Listener("GRPC", "h", 0)]) == []
    socket = [
        Listener("HTTP", "unix:/a", 80),
        Listener("GRPC", "unix:/a", 81),
        Listener("metrics", "unix:/b", 81),
    ]
    assert len(port_collisions(socket)) == 1


def test_options_are_described_with_type_default_and_meaning(manager):
    assert describe_plugin_options(manager).splitlines() == [
        "Options of installed plugins (keys of server.yaml):",
        "  frontends.http  (toy-plugins 7)",
        "    port: an integer, at least 0; default 8000",
        "        Where to listen.",
        "    host: text; default null",
        "  frontends.other  (toy-plugins 7)",
        "    port: an integer, at least 0; default 8000",
        "        Where to listen.",
        "    host: text; default null",
        "  backends.toy  (toy-plugins 7)",
        "    key: text; required",
        "        A secret.",
        '    max_size: a size such as 67108864 or "64MiB"; default 10',
        "    names: a list; default empty",
    ]


def test_no_options_are_described_as_none():
    assert describe_plugin_options(make_plugin_manager(discover=False)).endswith("  none")


def test_options_of_a_python_based_backend_are_those_of_the_python_backend(manager, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.py").touch()
    raw = {"backend_directory": str(tmp_path), "backends": {"mine": {"kye": "secret"}}}
    with pytest.raises(
        InvalidServerConfig, match=re.escape(install_command("tritonpy-backend-python"))
    ):
        check(manager, **raw)
    manager.register(WithPython(), "python-toys")
    with pytest.raises(InvalidServerConfig, match=r"backends\.mine\.kye: unknown option 'kye'"):
        check(manager, **raw)
    check(manager, **raw | {"backends": {"mine": {"key": "secret"}}})
    check(manager, **raw | {"backends": {"mine": {"max_size": 3}, "python": {"key": "secret"}}})


def test_options_of_authenticators_are_checked() -> None:
    config = decode_server_config(
        {"auth": {"unknown": {}}, "frontends": {"http": False, "grpc": False, "metrics": False}}
    )
    with pytest.raises(
        InvalidServerConfig, match=r"auth\.unknown: no plugin provides authenticator 'unknown'"
    ):
        check_plugin_options(config, make_plugin_manager(discover=False))


def test_an_unknown_cache_is_reported_with_its_package(manager):
    with pytest.raises(InvalidServerConfig, match=r"cache\.redis: .*tritonpy-cache-redis"):
        check(manager, cache={"redis": {"host": "h"}})
    with pytest.raises(InvalidServerConfig, match=r"cache\.own: .*response cache 'own'"):
        check(manager, cache={"own": {}})
