"""The server on real sockets, on both event loops that it may run on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import grpc
import pytest
import trustme
import uvloop

from tritonpy_frontend_grpc.connections import ConnectionOptions
from tritonpy_frontend_h2.http2.codes import (
    CANCEL,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from tritonpy_frontend_h2.http2.encode import encode
from tritonpy_frontend_h2.listening import listen_on_port
from tritonpy_frontend_h2.server import Http2Server

from .http2.talk import HELLO, NotedCalls, begin, body, frame

HEAD = encode([(b":status", b"200"), (b"content-type", b"application/grpc")])
OK = encode([(b"grpc-status", b"0")])
WIDE = frame(SETTINGS, 0, 0, b"\0\4" + (2**30).to_bytes(4, "big")) + frame(
    WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big")
)
PATIENCE_S = 20


def echo(call):
    """Answer a gRPC call with the messages of its request."""
    call.stream.send(HEAD, (call.body,), OK)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(scenario):
        with asyncio.Runner(loop_factory=request.param) as runner:
            failures = []
            runner.get_loop().set_exception_handler(lambda _loop, context: failures.append(context))
            runner.run(asyncio.wait_for(scenario(), PATIENCE_S))
            assert failures == []

    return run


@contextlib.asynccontextmanager
async def serving(on_end=echo, tls=None, **options):
    """Serve calls that end with `on_end`; give the server, its calls and its port."""
    calls = NotedCalls(on_end)
    server = Http2Server(calls, ConnectionOptions(**options), tls)
    sockets, address = listen_on_port("127.0.0.1", 0, reuse=False)
    server.serve(sockets)
    try:
        yield server, calls, int(address.rpartition(":")[2])
    finally:
        await server.stop(0)


class Client:
    """Says what it likes, and reads frame by frame."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port, sent=HELLO, **options):
        client = cls(*await asyncio.open_connection("127.0.0.1", port, **options))
        client.writer.write(sent)
        return client

    async def frame(self):
        start = await self.reader.readexactly(9)
        return (
            start[3],
            start[4],
            int.from_bytes(start[5:], "big"),
            await self.reader.readexactly(int.from_bytes(start[:3], "big")),
        )

    async def until(self, kind):
        while (found := await self.frame())[0] != kind:
            pass
        return found

    async def close(self):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def eventually(condition):
    while not condition():  # noqa: ASYNC110 - what it looks at has no event
        await asyncio.sleep(0.01)


def secured():
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    return authority, context


async def call(channel, message):
    return await channel.unary_unary("/service/Method")(message, timeout=PATIENCE_S)


UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_a_real_client_gets_what_it_sent(run, encrypted, direct):
    authority, context = secured()

    async def scenario():
        async with serving(tls=context if encrypted else None) as (_, calls, port):
            calls.room = bytearray(1_000_000) if direct else None
            if encrypted:
                credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
                channel = grpc.aio.secure_channel(f"localhost:{port}", credentials, UNLIMITED)
            else:
                channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", UNLIMITED)
            async with channel:
                for length in (0, 1, 400, 70_000, 5_000_000):
                    message = bytes(range(251)) * (length // 251 + 1)
                    assert await call(channel, message[:length]) == message[:length]
                many = [bytes((at,)) * at for at in range(200)]
                assert await asyncio.gather(*[call(channel, message) for message in many]) == many

    run(scenario)


def test_a_large_body_is_read_to_where_it_will_lie(run):
    async def scenario():
        async with serving(lambda _call: None) as (_, calls, port):
            calls.room = bytearray(3_000_000)
            client = await Client.to(port, HELLO + begin())
            lengths = []
            await eventually(lambda: calls.begun)
            calls.begun[0].filled = lambda count, ended: lengths.append((count, ended))
            client.writer.write(body(bytes(3_000_000)))
            await eventually(lambda: lengths and lengths[-1][1])
            assert sum(count for count, _ in lengths) > 2_000_000
            await client.close()

    run(scenario)


def test_who_is_encrypted_without_http_2_is_let_go(run):
    authority, context = secured()

    async def scenario():
        async with serving(tls=context) as (server, _, port):
            wanted = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
            client = await Client.to(port, b"", ssl=wanted, server_hostname="localhost")
            with contextlib.suppress(ConnectionError):
                assert await client.reader.read() == b""
            await eventually(lambda: not server._open)
            await client.close()

    run(scenario)


def test_answers_of_one_turn_are_written_together(run):
    async def scenario():
        waiting = []
        async with serving(waiting.append) as (server, _, port):
            client = await Client.to(port, HELLO + b"".join([begin(at, ended=True) for at in range(1, 65, 2)]))
            await eventually(lambda: len(waiting) == 32)
            (connection,) = server._open
            writes, write = [], connection._transport.write
            connection._transport = Recording(connection._transport, writes)
            for each in waiting:
                each.stream.send(HEAD, (b"message",), OK)
            for _ in range(32):
                await client.until(DATA)
            assert len(writes) == 1
            assert write
            await client.close()

    run(scenario)


class Recording:
    """A transport that notes what is written."""

    def __init__(self, transport, writes):
        self._transport = transport
        self._writes = writes

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def write(self, data):
        self._writes.append(data)
        self._transport.write(data)


def test_stop_says_which_calls_were_served_and_waits_for_them(run):
    async def scenario():
        waiting = []
        async with serving(waiting.append) as (server, _, port):
            client = await Client.to(port, HELLO + begin(1, ended=True) + begin(5, ended=True))
            await eventually(lambda: len(waiting) == 2)
            stopping = asyncio.create_task(server.stop(PATIENCE_S))
            *_, farewell = await client.until(GOAWAY)
            assert farewell == (5).to_bytes(4, "big") + bytes(4)
            client.writer.write(begin(7, ended=True))
            assert await client.until(RST_STREAM) == (RST_STREAM, 0, 7, (7).to_bytes(4, "big"))
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
            for each in waiting:
                each.stream.send(HEAD, (b"x",), OK)
            ends = [await client.until(HEADERS) for _ in range(4)]
            assert sum(flags & END_STREAM for _, flags, _, _ in ends) == 2
            assert await client.reader.read() == b""
            await client.close()
            await stopping

    run(scenario)


def test_stop_ends_calls_that_take_longer_than_its_grace(run):
    async def scenario():
        async with serving(lambda _call: None) as (server, calls, port):
            client = await Client.to(port, HELLO + begin(1, ended=True))
            await eventually(lambda: calls.begun)
            await server.stop(0.01)
            assert calls.begun[0].gone
            await client.close()

    run(scenario)


def test_a_call_hears_of_its_client_s_leaving(run):
    async def scenario():
        async with serving(lambda _call: None) as (server, calls, port):
            client = await Client.to(
                port, HELLO + begin(1) + begin(3) + frame(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big"))
            )
            await eventually(lambda: len(calls.begun) == 2 and calls.begun[0].gone)
            assert not calls.begun[1].gone
            await client.close()
            await eventually(lambda: calls.begun[1].gone and not server._open)

    run(scenario)


def test_a_client_that_reads_nothing_costs_little_and_loses_nothing(run):
    large = bytes(20_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (server, calls, port):
            client = await Client.to(port, HELLO + WIDE + b"".join([begin(at, ended=True) for at in range(1, 21, 2)]))
            await eventually(lambda: len(calls.begun) == 10)
            (connection,) = server._open
            await eventually(lambda: not connection._connection.sender.open)
            assert connection._transport.get_write_buffer_size() < 4_000_000
            client.writer.write(begin(21, ended=True))  # is not read before the client reads
            received = 0
            while received < 11 * len(large):
                kind, _, _, payload = await client.frame()
                received += len(payload) if kind == DATA else 0
            assert len(calls.begun) == 11
            await client.close()

    run(scenario)


@pytest.mark.parametrize("windows", [WIDE, b""], ids=["wide", "narrow"])
def test_answers_are_delivered_when_clients_have_read_them(run, windows):
    large = bytes(20_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (server, calls, port):
            client = Client(*await asyncio.open_connection(sock=connected_with_little_room(port)))
            client.writer.write(HELLO + windows + begin(ended=True))
            await eventually(lambda: len(calls.begun) == 1)
            delivering = asyncio.create_task(server.delivered())
            client.writer.write(b"" if windows else WIDE)
            received = 0
            while received < len(large):
                # the last of it may lie in the client's own room, where the server no longer sees it
                assert not delivering.done() or len(large) - received < 2**20
                kind, _, _, payload = await client.frame()
                received += len(payload) if kind == DATA else 0
            await delivering
            await client.close()

    run(scenario)


def connected_with_little_room(port):
    """Return a client's socket that takes no more than some 100 KB ahead of its reader."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
    plain.connect(("127.0.0.1", port))
    return plain


def test_a_fault_is_told_before_the_connection_closes(run):
    async def scenario():
        async with serving() as (server, _, port):
            client = await Client.to(port, HELLO + frame(PING, 0, 1, bytes(8)) + bytes(100_000))
            *_, farewell = await client.until(GOAWAY)
            assert farewell.endswith(b"a ping of a stream")
            assert await client.reader.read() == b""
            await client.close()
            await eventually(lambda: not server._open)

    run(scenario)


def test_a_client_that_never_closes_after_a_fault_is_closed(run):
    async def scenario():
        async with serving() as (server, _, port):
            with socket.create_connection(("127.0.0.1", port)) as stream:
                stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await eventually(lambda: server._open)
                await eventually(lambda: not server._open)

    run(scenario)


def test_garbage_is_no_error_of_the_server(run):
    async def scenario():
        async with serving() as (server, _, port):
            for sent in (
                b"",
                b"\0" * 100,
                HELLO[:30],
                HELLO + b"\xff" * 1000,
                HELLO + begin()[:-3],
                HELLO + begin() + body(b"x" * 99)[:50],
            ):
                client = await Client.to(port, sent)
                await client.close()
            await eventually(lambda: not server._open)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                assert await call(channel, b"still there") == b"still there"

    run(scenario)


def test_one_connection_too_many_is_closed(run):
    async def scenario():
        async with serving(max_connections=1) as (server, _, port):
            first = await Client.to(port)
            await first.until(SETTINGS)
            second = await Client.to(port)
            with contextlib.suppress(ConnectionError):
                assert await second.reader.read() == b""
            first.writer.write(begin(1) + body(b"hello"))
            assert (await first.until(DATA))[3] == b"hello"
            await first.close()
            await second.close()
            await eventually(lambda: not server._open)
            third = await Client.to(port)
            await third.until(SETTINGS)
            await third.close()

    run(scenario)


def test_an_old_connection_gives_all_that_was_answered_to_a_client_that_reads_slowly(run):
    large = bytes(30_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (server, _, port):
            client = await Client.to(port, HELLO + WIDE + begin(1, ended=True))
            await eventually(lambda: [each for each in server._open if each._transport.get_write_buffer_size()])
            (connection,) = server._open
            connection.retire("max_age")
            await client.until(GOAWAY)  # somewhere between the data
            client.writer.write(frame(PING, 1, 0, (1).to_bytes(8, "big")))
            end = b""
            while part := await client.reader.read(100_000):
                end = (end + part)[-100:]
            assert OK in end
            await client.close()

    run(scenario)
