from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

import pytest

from tritonpy import StartupError
from tritonpy.frontend import Frontend
from tritonpy_serve import lifecycle
from tritonpy_serve.lifecycle import ServerLifecycle, is_loopback

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


class ToyFrontend(Frontend):
    def __init__(self, where):
        self.where = where

    async def start(self, engine):
        raise AssertionError("the server starts frontends, not its life cycle")

    def address(self):
        return self.where


class ToyServer:
    """Records its calls. `on` maps the names of methods to functions that they call."""

    def __init__(self, address="127.0.0.1:1", **on):
        self.failure = ""
        self.frontends = {"http": ToyFrontend(address)}
        self.calls = []
        self.on = on

    async def call(self, name, default=None):
        self.calls.append(name)
        return await self.on[name]() if name in self.on else default

    async def start(self):
        await self.call("start")

    async def stop_accepting(self, timeout_s):
        self.calls.append("stop_accepting")
        return timeout_s

    async def drain(self, timeout_s):
        return await self.call("drain", default=True)

    async def stop(self):
        await self.call("stop")


def send(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def signalled(number=signal.SIGTERM):
    async def start():
        send(number)

    return start


@pytest.fixture
def exits():
    return []


@pytest.fixture
def life(exits):
    def make(server, exit_timeout_s=30.0, exit_now=exits.append):
        return ServerLifecycle(server, exit_timeout_s, lambda: exits.append("cleaned"), exit_now)

    yield make
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_stops_the_server(life, exits, number, caplog):
    caplog.set_level(logging.INFO, "tritonpy")
    server = ToyServer(start=signalled(number))
    life(server).run()
    assert server.calls == ["start", "stop_accepting", "drain", "stop"]
    assert exits == []
    assert f"Signal ({int(number)}) received." in caplog.messages


def test_signal_handlers_are_restored_at_the_end(life):
    before = [signal.getsignal(number) for number in lifecycle.SIGNALS]
    life(ToyServer(start=signalled())).run()
    assert [signal.getsignal(number) for number in lifecycle.SIGNALS] == before


def test_addresses_are_logged_with_how_to_open_them(life, caplog):
    caplog.set_level(logging.INFO, "tritonpy")
    life(ToyServer(start=signalled())).run()
    assert "ready: http on 127.0.0.1:1" in caplog.messages
    assert any("--host=0.0.0.0" in message for message in caplog.messages)
    caplog.clear()
    life(ToyServer("0.0.0.0:1", start=signalled())).run()
    assert "ready: http on 0.0.0.0:1" in caplog.messages
    assert not any("--host=0.0.0.0" in message for message in caplog.messages)


def test_a_failed_start_stops_the_server_and_is_raised(life, exits):
    async def start():
        raise StartupError("port 1 is taken")

    server = ToyServer(start=start)
    with pytest.raises(StartupError, match="port 1 is taken"):
        life(server).run()
    assert server.calls == ["start", "stop"]
    assert exits == []


def test_a_signal_during_the_start_cancels_it(life):
    async def start():
        send()
        await asyncio.Event().wait()

    server = ToyServer(start=start)
    life(server).run()
    assert server.calls == ["start", "stop"]


def test_a_second_signal_ends_the_process(life, exits):
    forced = asyncio.Event()

    async def drain():
        send()
        await forced.wait()
        return True

    def exit_now(status):
        exits.append(status)
        forced.set()

    life(ToyServer(start=signalled(), drain=drain), exit_now=exit_now).run()
    assert exits == ["cleaned", 1]


def test_the_process_ends_when_requests_exceed_the_exit_timeout(life, exits, caplog):
    async def drain():
        return False

    life(ToyServer(start=signalled(), drain=drain)).run()
    assert exits == ["cleaned", 1]
    assert "Exit timeout expired. Exiting immediately." in caplog.messages


def test_the_process_ends_when_the_server_hangs_in_stop(life, exits, monkeypatch):
    monkeypatch.setattr(lifecycle, "GRACE_S", 0)
    expired = threading.Event()

    async def stop():
        assert expired.wait(30)  # the event loop itself hangs

    def exit_now(status):
        exits.append(status)
        expired.set()

    life(ToyServer(start=signalled(), stop=stop), exit_timeout_s=0, exit_now=exit_now).run()
    assert exits == ["cleaned", 1]


def test_the_process_ends_even_if_cleanup_fails(exits, caplog):
    async def drain():
        return False

    def clean_up():
        raise OSError("busy")

    with pytest.raises(OSError, match="busy"):
        ServerLifecycle(ToyServer(start=signalled(), drain=drain), 30, clean_up, exits.append).run()
    assert exits == [1]


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:80", True),
        ("[::1]:80", True),
        ("localhost:80", True),
        ("0.0.0.0:80", False),
        ("[::]:80", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_recognized(address, loopback):
    assert is_loopback(address) is loopback
