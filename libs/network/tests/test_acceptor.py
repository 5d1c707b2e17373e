from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
import subprocess
import sys

import pytest
import trustme
import uvloop

from tritonpy_network.acceptor import Acceptor, Descriptors, Evictable

LOG = logging.getLogger("test")
SECONDS = 20


class Connection(asyncio.Protocol, Evictable):
    """A connection that is idle unless it is set to busy."""

    def __init__(self, opened, busy):
        self.opened = opened
        self.busy = busy
        self.evicted = False

    def connection_made(self, transport):
        self.transport = transport
        self.since = asyncio.get_running_loop().time()
        self.opened.append(self)

    def connection_lost(self, exc):
        self.opened.remove(self)

    def idle_since(self):
        return None if self.busy or self.transport.is_closing() else self.since

    def evict(self):
        self.evicted = True
        self.transport.abort()


class Listener:
    """An acceptor with a port. `most` is its number of connections before descriptors run low."""

    def __init__(self, most, busy=False, tls=None, guaranteed=0, refusal=b"busy"):
        self.opened = []
        listening = socket.create_server(("127.0.0.1", 0), backlog=1000)
        listening.setblocking(False)
        self.address = listening.getsockname()
        self.descriptors = Descriptors(2**16)
        self.descriptors.guaranteed = guaranteed
        self.acceptor = Acceptor(
            "test",
            lambda: Connection(self.opened, busy),
            self.opened,
            LOG,
            tls,
            60.0,
            refusal,
            self.descriptors,
        )
        self.acceptor.listen([listening])
        self.descriptors.ceiling = _lowest_free() + most

    async def close(self):
        self.acceptor.close()
        await self.acceptor.closed()
        for each in list(self.opened):
            each.transport.abort()
        await until(lambda: not self.opened)


def _lowest_free():
    with open(os.devnull) as file:
        return file.fileno()


class Clients:
    """Connections from another process, so that they use none of this one's descriptors."""

    def __init__(self, address, count):
        script = f"""
import socket, sys
held = [socket.create_connection({address!r}) for _ in range({count})]
print("connected", flush=True)
sys.stdin.read()
"""
        self.process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    async def connected(self):
        assert (await asyncio.to_thread(self.process.stdout.readline)).strip() == b"connected"

    def close(self):
        self.process.communicate()


async def until(condition):
    while not condition():  # noqa: ASYNC110 - the condition has no event
        await asyncio.sleep(0.005)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(scenario):
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scenario(), SECONDS))

    return run


def test_the_reserve_grows_with_the_limit_and_has_bounds():
    reserves = [
        Descriptors(limit).limit - Descriptors(limit).ceiling
        for limit in (32, 64, 200, 1024, 1_000_000)
    ]
    assert reserves == [16, 16, 50, 256, 1024]
    assert [Descriptors(limit).guaranteed for limit in (64, 200, 1024)] == [2, 6, 8]


def test_idle_connections_are_closed_and_the_reserve_stays_free(run):
    async def scenario():
        listener = Listener(most=40)
        clients = Clients(listener.address, 200)
        await clients.connected()
        await until(lambda: len(listener.opened) > 20)
        with socket.create_connection(listener.address) as last:
            await until(
                lambda: any(
                    each.transport.get_extra_info("peername") == last.getsockname()
                    for each in listener.opened
                )
            )
            assert len(listener.opened) <= 40
            assert (
                max(each.transport.get_extra_info("socket").fileno() for each in listener.opened)
                < listener.descriptors.ceiling
            )
        await listener.close()
        clients.close()

    run(scenario)


def test_the_longest_idle_connection_is_closed_first(run):
    async def scenario():
        listener = Listener(most=10)
        clients = Clients(listener.address, 5)
        await clients.connected()
        await until(lambda: len(listener.opened) == 5)
        oldest = listener.opened[0]
        listener.descriptors.ceiling = _lowest_free()
        more = Clients(listener.address, 1)
        await more.connected()
        await until(lambda: oldest.evicted)
        assert not any(each.evicted for each in listener.opened if each is not oldest)
        await listener.close()
        clients.close()
        more.close()

    run(scenario)


def test_the_listener_with_most_idle_connections_closes_some(run):
    async def scenario():
        crowded, other = Listener(most=1000), Listener(most=1000)
        clients = Clients(crowded.address, 20)
        await clients.connected()
        await until(lambda: len(crowded.opened) == 20)
        other.descriptors.ceiling = max(
            each.transport.get_extra_info("socket").fileno() for each in crowded.opened
        )
        first = crowded.opened[0]
        with socket.create_connection(other.address):
            await until(lambda: len(other.opened) == 1)
        assert first.evicted
        await crowded.close()
        await other.close()
        clients.close()

    run(scenario)


def test_busy_connections_stay_open_and_new_ones_get_the_refusal(run, caplog):
    async def scenario():
        listener = Listener(most=1000, busy=True)
        clients = Clients(listener.address, 4)
        await clients.connected()
        await until(lambda: len(listener.opened) == 4)
        listener.descriptors.ceiling = 0
        reader, writer = await asyncio.open_connection(*listener.address)
        assert await reader.read() == b"busy"
        writer.close()
        assert len(listener.opened) == 4
        await listener.close()
        clients.close()

    run(scenario)
    assert (
        "test refused a connection: few of the 65536 file descriptors (ulimit -n) are free"
        in caplog.text
    )


def test_each_listener_may_have_a_few_connections_when_all_others_are_busy(run):
    async def scenario():
        crowded, other = Listener(most=1000, busy=True), Listener(most=0, busy=True, guaranteed=2)
        clients = Clients(crowded.address, 20)
        await clients.connected()
        await until(lambda: len(crowded.opened) == 20)
        two = Clients(other.address, 2)
        await two.connected()
        await until(lambda: len(other.opened) == 2)
        reader, writer = await asyncio.open_connection(*other.address)
        assert await reader.read() == b"busy"
        writer.close()
        await crowded.close()
        await other.close()
        clients.close()
        two.close()

    run(scenario)


def test_clients_without_a_handshake_are_closed(run):
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    async def scenario():
        listener = Listener(most=20, tls=context)
        clients = Clients(listener.address, 60)
        await clients.connected()
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        _, writer = await asyncio.open_connection(
            *listener.address, ssl=trusting, server_hostname="localhost"
        )
        await until(lambda: len(listener.opened) == 1)
        assert len(listener.acceptor._handshakes) <= 20
        writer.close()
        await listener.close()
        clients.close()

    run(scenario)


def test_accepting_resumes_after_a_lack_of_descriptors(run, caplog):
    class Failing:
        """A listening socket whose first accept fails."""

        def __init__(self, listening):
            self.listening, self.failures = listening, 1

        def __getattr__(self, name):
            return getattr(self.listening, name)

        def fileno(self):
            return self.listening.fileno()

        def accept(self):
            if self.failures:
                self.failures -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return self.listening.accept()

    async def scenario():
        listener = Listener(most=1000)
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        listener.acceptor.listen([Failing(listening)])
        with socket.create_connection(listening.getsockname()):
            await until(lambda: len(listener.opened) == 1)
        await listener.close()

    run(scenario)
    assert "Too many open files" not in caplog.text
    assert "Traceback" not in caplog.text


def test_connections_that_the_kernel_completed_are_accepted_before_the_port_closes(run):
    async def scenario():
        listener = Listener(most=1000)
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(socket.create_connection(listener.address))
            listener.acceptor.close()
            await until(lambda: len(listener.opened) == 100)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(listener.address)
        await listener.close()

    run(scenario)
