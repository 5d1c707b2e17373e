from __future__ import annotations

import asyncio
import signal

import pytest

from tritonpy import Embedded, Frontend, Options, ProcessTransport, StartupError, Transport, hookimpl
from tritonpy.cli import embedded
from tritonpy.plugins import make_plugin_manager
from tritonpy.testing import ProcessTransportContract, TransportContract


class LineOptions(Options, frozen=True):
    port: int = 0


class Line(Frontend):
    """Takes connections and says nothing."""

    Options = LineOptions

    def __init__(self, options, context):
        super().__init__(options, context)
        self.server = None

    async def start(self, engine):
        try:
            self.server = await asyncio.start_server(
                lambda reader, writer: writer.close(), self.context.host, self.options.port
            )
        except OSError as error:
            raise StartupError(f"port {self.options.port}: {error}") from error

    async def stop(self):
        if self.server is not None:
            self.server.close()
            await self.server.wait_closed()


class HereOptions(Options, frozen=True):
    pass


class Here(ProcessTransport):
    """Is no other process at all: the server runs here, on a loop that takes the signals."""

    Options = HereOptions
    carries = {"line": f"{__name__}:Line"}  # noqa: RUF012

    def run(self, launch):
        return asyncio.run(self.serve(launch))

    async def serve(self, launch):
        server, loop = Embedded(launch.document), asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(number) for number in numbers]
        for number in numbers:
            loop.add_signal_handler(number, server.signalled, number)
        try:
            status, failure = await server.serve()
        finally:
            for number, handler in zip(numbers, before, strict=True):
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
        if failure:
            raise failure.error()
        return status


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_transports():
        return {"here": Here}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Let the plugin be found where the server is built, as an installed one is."""

    def find(disable=()):
        manager = make_plugin_manager(disable=disable)
        manager.register(Plugin, "here")
        return manager

    monkeypatch.setattr(embedded, "make_plugin_manager", find)


class HereContract(ProcessTransportContract):
    plugin_class = Here
    name = "here"
    frontend = "line"


class TestHere(HereContract):
    plugin = Plugin


class Wire(Transport):
    """Carries in the server's own process."""

    carries = {"line": f"{__name__}:Line"}  # noqa: RUF012


class TestWire(TransportContract):
    plugin_class = Wire
    frontend = "line"


class Empty(Here):
    carries = {}  # noqa: RUF012


class Strange(Here):
    carries = {"line": f"{__name__}:HereOptions"}  # noqa: RUF012


BROKEN = {Empty: "test_it_carries_frontends", Strange: "test_it_carries_frontends"}


@pytest.mark.parametrize("transport", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_transport_fails(failures, monkeypatch, transport):
    monkeypatch.setattr("tritonpy.testing.contracts.transport.PATIENCE_S", 0.2)
    contract = type("Broken", (HereContract,), {"plugin_class": transport})
    assert BROKEN[transport] in failures(contract)
