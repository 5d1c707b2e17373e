"""The contract of frontends."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from tritonpy import Engine, StartupError
from tritonpy.config import decode_options
from tritonpy.frontend import Frontend, FrontendContext, SharedPort
from tritonpy_testing.contracts.optional import given, only_if
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_testing.toy_engine import ToyEngine

HOST = "127.0.0.1"
OBSERVATION_S = 0.1  # observation time for events that must not happen


class _OpenPort:
    """A shared port: its connections are passed to one frontend."""

    def __init__(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        self._socket = listening
        self.address = f"{HOST}:{listening.getsockname()[1]}"

    async def forward(self, frontend: Frontend) -> None:
        while True:
            accepted, _ = await asyncio.get_running_loop().sock_accept(self._socket)
            frontend.accept(accepted)


def _shares_a_port(contract: Any) -> bool:
    return given("call")(contract) and bool(
        getattr(getattr(contract, "plugin_class", None), "protocols", ())
    )


class FrontendContract(PluginContract):
    """The contract of `Frontend`.

    Set `plugin_class`; override `call` if the frontend serves inferences.

    With `call`, responses and draining are checked, too, and connections of a shared port if the
    frontend has `protocols`. The tests set the option named by
    `port_option`. The frontend must choose a free port for 0 and return it in `address`.
    """

    interface = Frontend
    hook = "tritonpy_frontends"
    port_option: ClassVar[str] = "port"

    def call(self, address: str) -> None:
        """Infer with the toy model `identity` at `address` and check the response.

        It runs in a thread and must raise if the request is refused.
        """
        raise NotImplementedError

    def make(self, port: int = 0, shared: SharedPort | None = None) -> Frontend:
        """Return a new frontend for `port`, or for connections of a `shared` port."""
        options = decode_options(
            self.plugin_class.Options, {**self.options, self.port_option: port}, "options"
        )
        context = FrontendContext(HOST, logging.getLogger("tritonpy_testing"), single_port=shared)
        frontend = self.plugin_class(options, context)
        assert isinstance(frontend, Frontend)
        return frontend

    @asynccontextmanager
    async def started(self, engine: Engine, port: int = 0) -> AsyncIterator[Frontend]:
        """Start a frontend, and stop it at the end."""
        frontend = self.make(port)
        await frontend.start(engine)
        try:
            yield frontend
        finally:
            await asyncio.wait_for(frontend.stop(), WAIT_S)

    def test_it_accepts_connections_from_start_to_stop(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            assert self.make().address() == "", "address() must be empty before start()"
            async with self.started(engine) as frontend:
                address = frontend.address()
                _connect(address).close()
            try:
                _connect(address).close()
            except ConnectionRefusedError:
                return
            raise AssertionError("the port still accepts connections after stop()")

        _run(scenario)

    def test_an_error_names_the_port_in_use(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            with socket.create_server((HOST, 0)) as taken:
                port = taken.getsockname()[1]
                frontend = self.make(port)
                try:
                    await frontend.start(engine)
                except StartupError as error:
                    assert str(port) in str(error), (
                        f"the error does not name the port {port}: {error}"
                    )
                    assert HOST in str(error), (
                        f"the error does not name the address {HOST}: {error}"
                    )
                else:
                    await frontend.stop()
                    raise AssertionError("start() on a taken port did not raise StartupError")
                await frontend.stop()

        _run(scenario)

    def test_the_port_is_free_again_after_stop(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            async with self.started(engine) as frontend:
                port = _port(frontend.address())
            async with self.started(engine, port) as frontend:
                assert _port(frontend.address()) == port

        _run(scenario)

    def test_stop_works_without_start_and_twice(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            await self.make().stop()
            async with self.started(engine) as frontend:
                await frontend.drain()
                await frontend.stop()

        _run(scenario)

    def test_stop_closes_idle_connections(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            async with self.started(engine) as frontend:
                reader, writer = await asyncio.open_connection(HOST, _port(frontend.address()))
            await asyncio.wait_for(_until_closed(reader), WAIT_S)
            writer.close()

        _run(scenario)

    def test_signal_handlers_are_not_changed(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            async with self.started(engine):
                after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            assert before == after, "the frontend installed a signal handler"

        _run(scenario)

    @only_if(given("call"))
    def test_a_request_is_answered(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            async with self.started(engine) as frontend:
                await asyncio.to_thread(self.call, frontend.address())

        _run(scenario)

    @only_if(given("call"))
    def test_drain_waits_for_live_requests(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            async with self.started(engine) as frontend:
                await asyncio.to_thread(self.call, frontend.address())
                with engine.hold():
                    live = asyncio.create_task(asyncio.to_thread(self.call, frontend.address()))
                    await asyncio.to_thread(engine.wait_for_requests, 1)
                    drain = asyncio.create_task(frontend.drain())
                    done, _ = await asyncio.wait({drain}, timeout=OBSERVATION_S)
                await asyncio.wait_for(asyncio.gather(live, drain), WAIT_S)
                assert not done, "drain() returned while a request was live"

        _run(scenario)

    @only_if(given("call"))
    def test_a_drained_frontend_refuses_requests(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            async with self.started(engine) as frontend:
                await asyncio.to_thread(self.call, frontend.address())
                await frontend.drain()
                try:
                    await asyncio.wait_for(asyncio.to_thread(self.call, frontend.address()), WAIT_S)
                except Exception:
                    return
                raise AssertionError("a request was served after drain()")

        _run(scenario)

    @only_if(_shares_a_port)
    def test_connections_of_a_shared_port_are_served(self) -> None:
        async def scenario(engine: ToyEngine) -> None:
            with socket.create_server((HOST, 0)) as listening:
                port = _OpenPort(listening)
                frontend = self.make(shared=port)
                forwarding = asyncio.create_task(port.forward(frontend))
                try:
                    await frontend.start(engine)
                    assert frontend.address() == port.address, (
                        "address() must be that of the shared port"
                    )
                    await asyncio.to_thread(self.call, port.address)
                finally:
                    forwarding.cancel()
                    await asyncio.wait_for(frontend.stop(), WAIT_S)

        _run(scenario)


def _run(scenario: Any) -> None:
    with ToyEngine() as engine:
        asyncio.run(scenario(engine))


def _port(address: str) -> int:
    _, _, port = address.rpartition(":")
    assert port.isdecimal(), f"address() must return host:port, it returned '{address}'"
    return int(port)


def _connect(address: str) -> socket.socket:
    return socket.create_connection((HOST, _port(address)), WAIT_S)


async def _until_closed(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        return
