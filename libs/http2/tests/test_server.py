"""Tests of the server on real sockets with asyncio and uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import grpc
import pytest
import trustme
import uvloop

from tritonpy_http2 import server as server_module
from tritonpy_http2.codes import (
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
from tritonpy_http2.encode import encode
from tritonpy_http2.server import Http2Server
from tritonpy_http2.timeouts import TimeoutSettings

from .raw_client import CLIENT_HELLO, RecordingCalls, begin, body, frame

HEAD = encode([(b":status", b"200"), (b"content-type", b"application/grpc")])
OK = encode([(b"grpc-status", b"0")])
WIDE = frame(SETTINGS, 0, 0, b"\0\4" + (2**30).to_bytes(4, "big")) + frame(
    WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big")
)
WAIT_S = 20


def echo(call):
    """Respond to a gRPC call with the messages of its request."""
    call.stream.send(HEAD, (call.body,), OK)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(scenario):
        with asyncio.Runner(loop_factory=request.param) as runner:
            failures = []
            runner.get_loop().set_exception_handler(lambda _loop, context: failures.append(context))
            runner.run(asyncio.wait_for(scenario(), WAIT_S))
            assert failures == []

    return run


@contextlib.asynccontextmanager
async def serving(on_end=echo, tls=None, **options):
    """Serve calls with `on_end`; yield the server, its calls and its port."""
    calls = RecordingCalls(on_end)
    server = Http2Server(calls, **options)
    listening = await asyncio.get_running_loop().create_server(
        server.make_protocol, "127.0.0.1", 0, ssl=tls
    )
    try:
        yield server, calls, listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        await server.stop(0)


class Client:
    """A client that sends raw bytes and reads frames."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port, sent=CLIENT_HELLO, **options):
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
    while not condition():  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.01)


def secured():
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    return authority, context


async def call(channel, message):
    return await channel.unary_unary("/service/Method")(message, timeout=WAIT_S)


UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_grpc_clients_get_their_messages_back(run, encrypted, direct):
    authority, context = secured()

    async def scenario():
        async with serving(tls=context if encrypted else None) as (_, calls, port):
            calls.body_buffer = bytearray(1_000_000) if direct else None
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


def test_a_large_body_is_read_into_its_buffer(run):
    async def scenario():
        async with serving(lambda _call: None) as (_, calls, port):
            calls.body_buffer = bytearray(3_000_000)
            client = await Client.to(port, CLIENT_HELLO + begin())
            lengths = []
            await eventually(lambda: calls.started)
            calls.started[0].body_buffer_updated = lambda count, ended: lengths.append(
                (count, ended)
            )
            client.writer.write(body(bytes(3_000_000)))
            await eventually(lambda: lengths and lengths[-1][1])
            assert sum(count for count, _ in lengths) > 2_000_000
            await client.close()

    run(scenario)


def test_a_tls_client_without_http2_is_disconnected(run):
    authority, context = secured()

    async def scenario():
        async with serving(tls=context) as (server, _, port):
            client_context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
            client = await Client.to(port, b"", ssl=client_context, server_hostname="localhost")
            with contextlib.suppress(ConnectionError):
                assert await client.reader.read() == b""
            await eventually(lambda: not server.connections)
            await client.close()

    run(scenario)


def test_responses_of_one_iteration_are_written_together(run):
    async def scenario():
        waiting = []
        async with serving(waiting.append) as (server, _, port):
            client = await Client.to(
                port, CLIENT_HELLO + b"".join([begin(at, ended=True) for at in range(1, 65, 2)])
            )
            await eventually(lambda: len(waiting) == 32)
            (connection,) = server.connections
            writes, write = [], connection._transport.write
            connection._transport = RecordingTransport(connection._transport, writes)
            for each in waiting:
                each.stream.send(HEAD, (b"message",), OK)
            for _ in range(32):
                await client.until(DATA)
            assert len(writes) == 1
            assert write
            await client.close()

    run(scenario)


class RecordingTransport:
    """A transport that records writes."""

    def __init__(self, transport, writes):
        self._transport = transport
        self._writes = writes

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def write(self, data):
        self._writes.append(data)
        self._transport.write(data)


def test_stop_sends_goaway_and_waits_for_calls(run):
    async def scenario():
        waiting = []
        async with serving(waiting.append) as (server, _, port):
            client = await Client.to(
                port, CLIENT_HELLO + begin(1, ended=True) + begin(5, ended=True)
            )
            await eventually(lambda: len(waiting) == 2)
            stopping = asyncio.create_task(server.stop(WAIT_S))
            *_, goaway = await client.until(GOAWAY)
            assert goaway == (5).to_bytes(4, "big") + bytes(4)
            client.writer.write(begin(7, ended=True))
            assert await client.until(RST_STREAM) == (RST_STREAM, 0, 7, (7).to_bytes(4, "big"))
            for each in waiting:
                each.stream.send(HEAD, (b"x",), OK)
            ends = [await client.until(HEADERS) for _ in range(4)]
            assert sum(flags & END_STREAM for _, flags, _, _ in ends) == 2
            assert await client.reader.read() == b""
            await client.close()
            await stopping

    run(scenario)


def test_stop_resets_calls_after_the_grace_period(run):
    async def scenario():
        async with serving(lambda _call: None) as (server, calls, port):
            client = await Client.to(port, CLIENT_HELLO + begin(1, ended=True))
            await eventually(lambda: calls.started)
            await server.stop(0.01)
            assert calls.started[0].was_reset
            await client.close()

    run(scenario)


def test_a_disconnect_resets_the_calls(run):
    async def scenario():
        async with serving(lambda _call: None) as (server, calls, port):
            client = await Client.to(
                port,
                CLIENT_HELLO
                + begin(1)
                + begin(3)
                + frame(RST_STREAM, 0, 1, CANCEL.to_bytes(4, "big")),
            )
            await eventually(lambda: len(calls.started) == 2 and calls.started[0].was_reset)
            assert not calls.started[1].was_reset
            await client.close()
            await eventually(lambda: calls.started[1].was_reset and not server.connections)

    run(scenario)


def test_a_slow_client_uses_little_memory_and_loses_nothing(run):
    large = bytes(20_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (
            server,
            calls,
            port,
        ):
            client = await Client.to(
                port,
                CLIENT_HELLO + WIDE + b"".join([begin(at, ended=True) for at in range(1, 21, 2)]),
            )
            await eventually(lambda: len(calls.started) == 10)
            (connection,) = server.connections
            await eventually(lambda: not connection._connection.sender.open)
            assert connection._transport.get_write_buffer_size() < 4_000_000
            client.writer.write(begin(21, ended=True))  # not read until the client reads
            received = 0
            while received < 11 * len(large):
                kind, _, _, payload = await client.frame()
                received += len(payload) if kind == DATA else 0
            assert len(calls.started) == 11
            await client.close()

    run(scenario)


@pytest.mark.parametrize("windows", [WIDE, b""], ids=["wide", "narrow"])
def test_responses_are_unread_until_the_client_has_read_them(run, windows):
    large = bytes(20_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (
            server,
            calls,
            port,
        ):
            client = Client(*await asyncio.open_connection(sock=connect_with_small_buffer(port)))
            client.writer.write(CLIENT_HELLO + windows + begin(ended=True))
            await eventually(lambda: len(calls.started) == 1)
            delivering = asyncio.create_task(eventually(lambda: not server.unread_bytes()))
            client.writer.write(b"" if windows else WIDE)
            received = 0
            while received < len(large):
                # the last bytes may be in the socket buffer of the client
                assert not delivering.done() or len(large) - received < 2**20
                kind, _, _, payload = await client.frame()
                received += len(payload) if kind == DATA else 0
            await delivering
            await client.close()

    run(scenario)


def connect_with_small_buffer(port):
    """Return a client socket with a receive buffer of about 100 KB."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
    plain.connect(("127.0.0.1", port))
    return plain


def test_goaway_is_sent_before_the_connection_closes(run):
    async def scenario():
        async with serving() as (server, _, port):
            client = await Client.to(
                port, CLIENT_HELLO + frame(PING, 0, 1, bytes(8)) + bytes(100_000)
            )
            *_, goaway = await client.until(GOAWAY)
            assert goaway.endswith(b"PING on a stream")
            assert await client.reader.read() == b""
            await client.close()
            await eventually(lambda: not server.connections)

    run(scenario)


def test_a_client_that_does_not_close_after_an_error_is_disconnected(run):
    async def scenario():
        async with serving() as (server, _, port):
            with socket.create_connection(("127.0.0.1", port)) as stream:
                stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await eventually(lambda: server.connections)
                await eventually(lambda: not server.connections)

    run(scenario)


def test_invalid_input_does_not_affect_other_clients(run):
    async def scenario():
        async with serving() as (server, _, port):
            for sent in (
                b"",
                b"\0" * 100,
                CLIENT_HELLO[:30],
                CLIENT_HELLO + b"\xff" * 1000,
                CLIENT_HELLO + begin()[:-3],
                CLIENT_HELLO + begin() + body(b"x" * 99)[:50],
            ):
                client = await Client.to(port, sent)
                await client.close()
            await eventually(lambda: not server.connections)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                assert await call(channel, b"still there") == b"still there"

    run(scenario)


def test_a_connection_above_the_limit_is_closed(run):
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
            await eventually(lambda: not server.connections)
            third = await Client.to(port)
            await third.until(SETTINGS)
            await third.close()

    run(scenario)


def test_an_old_connection_delivers_its_responses_to_a_slow_client(run):
    large = bytes(30_000_000)

    async def scenario():
        async with serving(lambda each: each.stream.send(HEAD, (large,), OK)) as (server, _, port):
            client = await Client.to(port, CLIENT_HELLO + WIDE + begin(1, ended=True))
            await eventually(
                lambda: [
                    each for each in server.connections if each._transport.get_write_buffer_size()
                ]
            )
            (connection,) = server.connections
            connection.start_draining("max_age")
            await client.until(GOAWAY)  # among the data
            client.writer.write(frame(PING, 1, 0, (1).to_bytes(8, "big")))
            end = b""
            while part := await client.reader.read(100_000):
                end = (end + part)[-100:]
            assert OK in end
            await client.close()

    run(scenario)


class Transport(asyncio.Transport):
    """A fake transport whose client reads one byte per check, or none."""

    def __init__(self, *, reads, unsent=10_000, tls=False):
        super().__init__()
        self.reads = reads
        self.unsent = unsent
        self.tls = tls
        self.written = b""
        self.ended = asyncio.Event()
        self.end = ""

    def write(self, data):
        self.written += data

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        self.unsent -= min(self.reads, self.unsent)
        return self.unsent

    def can_write_eof(self):
        return not self.tls

    def write_eof(self):
        self.ended.set()

    def abort(self):
        self.end = "aborted"

    def close(self):
        self.end = "closed"


@pytest.mark.parametrize("reads", [True, False])
def test_reading_progress_counts_as_activity_for_keepalive(reads):
    async def scenario():
        timeouts = TimeoutSettings(
            keepalive=0.02, keepalive_timeout=0.01, without_calls=True, pings=0
        )
        transport = Transport(reads=reads)
        protocol = Http2Server(RecordingCalls(), timeouts=timeouts).make_protocol()
        protocol.connection_made(transport)
        await asyncio.wait(
            [asyncio.create_task(transport.ended.wait())], timeout=0.3 if reads else 20
        )
        assert (b"ping_timeout" in transport.written) is not reads
        protocol.connection_lost(None)

    asyncio.run(scenario())


@pytest.mark.parametrize(("reads", "unread_bytes"), [(1, 0), (0, 20)])
@pytest.mark.parametrize("tls", [False, True])
def test_a_closing_connection_waits_for_a_reading_client_with_a_timeout(
    tls, reads, unread_bytes, monkeypatch
):
    async def scenario():
        monkeypatch.setattr(server_module, "_CLOSE_CHECK_S", 0.01)
        monkeypatch.setattr(server_module, "_NO_PROGRESS_S", 0.05)
        transport = Transport(reads=reads, unsent=20, tls=tls)
        protocol = Http2Server(RecordingCalls()).make_protocol()
        protocol.connection_made(transport)
        began = asyncio.get_running_loop().time()
        protocol.finish("")
        while not transport.end:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.005)
        assert asyncio.get_running_loop().time() - began >= 0.05
        assert transport.unsent == unread_bytes
        assert transport.end == ("closed" if tls and reads else "aborted")
        protocol.connection_lost(None)

    asyncio.run(scenario())
