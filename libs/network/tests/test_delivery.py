from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from tritonpy.frontend import delivered, unread
from tritonpy_network import acceptor

MUCH = bytes(16 * 2**20)
BOUND_S = 30


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "PERIOD_S", 0.001)


async def between(scenario: Callable[[asyncio.Transport, socket.socket], Awaitable[None]]) -> None:
    """Run `scenario` with a server's transport and a client's socket."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with theirs:
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
        await asyncio.wait_for(scenario(transport, theirs), BOUND_S)
        transport.abort()
        await asyncio.sleep(0)


async def read(client: socket.socket, count: int) -> None:
    loop = asyncio.get_running_loop()
    while count:
        count -= len(await loop.sock_recv(client, min(count, 1 << 20)))


def test_unread_bytes_of_transport_and_kernel_are_counted() -> None:
    async def scenario(transport: asyncio.Transport, client: socket.socket) -> None:
        assert unread(transport) == 0
        transport.write(MUCH)
        assert unread(transport) > transport.get_write_buffer_size() > 0
        await read(client, len(MUCH))
        while unread(transport):  # noqa: ASYNC110 - the kernel has no event for it
            await asyncio.sleep(0.001)

    asyncio.run(between(scenario))


def test_a_closed_transport_has_no_unread_bytes() -> None:
    async def scenario(transport: asyncio.Transport, _client: socket.socket) -> None:
        transport.abort()
        await asyncio.sleep(0)
        assert unread(transport) == 0

    asyncio.run(between(scenario))


def test_it_waits_until_the_client_has_everything() -> None:
    async def scenario(transport: asyncio.Transport, client: socket.socket) -> None:
        transport.write(MUCH)
        waiting = asyncio.create_task(delivered(lambda: unread(transport)))
        await read(client, len(MUCH) - 1)
        assert not waiting.done()
        await read(client, 1)
        await waiting

    asyncio.run(between(scenario))


def test_a_client_that_does_not_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "STALL_TIMEOUT_S", 0.01)

    async def scenario(transport: asyncio.Transport, _client: socket.socket) -> None:
        transport.write(MUCH)
        await delivered(lambda: unread(transport))
        assert unread(transport)

    asyncio.run(between(scenario))
