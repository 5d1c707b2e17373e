from __future__ import annotations

import asyncio
import logging
import socket
import ssl

import pytest
import trustme

from tritonpy import StartupError
from tritonpy.frontend import RequestMemory, TlsOptions, UnixSocket
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.h2.listeners import (
    BACKLOG,
    Http2Listener,
    listen_on_claim,
    listen_on_port,
    tls_context,
)
from tritonpy_frontend_grpc.options import ConnectionOptions
from tritonpy_http2 import IGNORED_BODY, NO_TRAILERS, Http2Calls, encode

from ..fake_engine import WAIT_S, eventually, run
from ..frames import PREFACE, SETTINGS, frame

HEADERS = 1
REQUEST = encode(
    [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"here")]
)


class RecordingCalls(Http2Calls):
    """Records streams and ignores their bodies."""

    def __init__(self):
        self.streams = []

    def begin(self, stream, headers, ended):
        self.streams.append(stream)
        return IGNORED_BODY

    def refuse(self, stream, size, limit):
        raise NotImplementedError


def close(listening):
    for each in listening.sockets:
        each.close()


def reach(family, where):
    with socket.socket(family) as client:
        client.settimeout(20)
        client.connect(where)


def test_port_0_picks_a_free_port():
    listening = listen_on_port("127.0.0.1", 0, reuse=False)
    port = listening.sockets[0].getsockname()[1]
    assert listening.address == f"127.0.0.1:{port}"
    reach(socket.AF_INET, ("127.0.0.1", port))
    close(listening)


def test_all_addresses_of_a_name_get_the_same_port(monkeypatch):
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0))
        for host in ("127.0.0.1", "127.0.0.2", "192.0.2.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    listening = listen_on_port("several", 0, reuse=False)
    names = [each.getsockname() for each in listening.sockets]
    assert [host for host, _ in names] == ["127.0.0.1", "127.0.0.2"]
    assert {port for _, port in names} == {int(listening.address.removeprefix("several:"))}
    close(listening)


def test_an_unknown_host_is_reported():
    with pytest.raises(StartupError, match=r"cannot listen on no-such-host\.invalid:1"):
        listen_on_port("no-such-host.invalid", 1, reuse=False)


def test_a_port_in_use_is_reported():
    first = listen_on_port("127.0.0.1", 0, reuse=False)
    port = first.sockets[0].getsockname()[1]
    with pytest.raises(
        StartupError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"
    ):
        listen_on_port("127.0.0.1", port, reuse=False)
    close(first)


def test_a_port_may_be_shared():
    first = listen_on_port("127.0.0.1", 0, reuse=True)
    second = listen_on_port("127.0.0.1", first.sockets[0].getsockname()[1], reuse=True)
    assert second.address == first.address
    close(first)
    close(second)


def test_several_listeners_share_a_claimed_port():
    claimed = claim_address("127.0.0.1", 0, reuse=False)
    both = [listen_on_claim(claimed.claim, "127.0.0.1") for _ in range(2)]
    assert [each.address for each in both] == [claimed.claim.address] * 2
    for each in both:
        close(each)
    claimed.close()


def test_a_claimed_unix_socket_is_shared(tmp_path):
    claimed = UnixSocket(str(tmp_path / "a.sock"), 0o600).claim(BACKLOG)
    listening = listen_on_claim(claimed.claim, "")
    assert listening.sockets == [claimed.claim.listening]
    reach(socket.AF_UNIX, str(tmp_path / "a.sock"))
    claimed.close()
    assert not (tmp_path / "a.sock").exists()


class Pem:
    """Certificate and key files; `renew` replaces them."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = trustme.CA()
        self.renew()

    def renew(self):
        made = self.authority.issue_cert("localhost")
        made.cert_chain_pems[0].write_to_path(self.folder / "certificate")
        made.private_key_pem.write_to_path(self.folder / "key")

    def options(self):
        return TlsOptions(
            certificate_file=str(self.folder / "certificate"), key_file=str(self.folder / "key")
        )

    def shake_hands(self, context, protocols=("h2",)):
        """Return the serial number of the server certificate and the negotiated protocol."""
        client_context = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        client_context.set_alpn_protocols(list(protocols))
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
        server = context.wrap_bio(to_server, to_client, server_side=True)
        waiting = [client, server]
        while waiting:
            for end in list(waiting):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                waiting.remove(end)
        return client.getpeercert()["serialNumber"], client.selected_alpn_protocol()


def test_without_tls_there_is_no_context():
    assert tls_context(TlsOptions(), logging.getLogger(__name__)) is None


def test_alpn_is_http2_and_renewed_files_are_used(tmp_path):
    pem = Pem(tmp_path)
    context = tls_context(pem.options(), logging.getLogger(__name__))
    before, protocol = pem.shake_hands(context, ("http/1.1", "h2"))
    assert protocol == "h2"
    pem.renew()
    after, protocol = pem.shake_hands(context)
    assert protocol == "h2"
    assert after != before
    (tmp_path / "key").write_text("nonsense")
    assert pem.shake_hands(context)[0] == after


def test_an_invalid_tls_file_is_named(tmp_path):
    pem = Pem(tmp_path)
    (tmp_path / "key").write_text("nonsense")
    with pytest.raises(StartupError, match=r"frontends\.grpc\.tls\.key_file"):
        tls_context(pem.options(), logging.getLogger(__name__))


def test_a_stopping_listener_refuses_connections_and_waits_for_calls():
    async def scenario():
        calls = RecordingCalls()
        listener = Http2Listener(
            calls, ConnectionOptions(), None, logging.getLogger(__name__), RequestMemory()
        )
        listening = listen_on_port("127.0.0.1", 0, reuse=False)
        listener.serve(listening.sockets)
        address = "127.0.0.1", listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(*address)
        writer.write(PREFACE + frame(SETTINGS) + frame(HEADERS, 5, 1, REQUEST))
        await eventually(lambda: calls.streams)
        stopping = asyncio.create_task(listener.stop(WAIT_S))
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        assert not stopping.done()
        calls.streams[0].send(encode([(b":status", b"200")]), (b"done",), NO_TRAILERS)
        await stopping
        assert b"done" in await reader.read()
        writer.close()

    run(scenario)


def test_an_idle_connection_is_closed_for_its_descriptor():
    async def scenario():
        listener = Http2Listener(
            RecordingCalls(),
            ConnectionOptions(),
            None,
            logging.getLogger(__name__),
            RequestMemory(),
        )
        listening = listen_on_port("127.0.0.1", 0, reuse=False)
        listener.serve(listening.sockets)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(PREFACE + frame(SETTINGS))
        await reader.readexactly(9)
        ((_, evict),) = listener._acceptor.idle()
        evict()
        assert b"too many connections" in await reader.read()
        writer.close()
        await listener.stop(0)

    run(scenario)
