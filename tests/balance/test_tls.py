"""TLS on the port: HTTP/1.1, HTTP/2, HTTP/3 and gRPC, certificates of clients, and TLS to servers."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import tritonclient.grpc
import trustme
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

from tests.balance.test_balance import ADD_SUB, grpc_inputs
from tests.conftest import TIMEOUT_S


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, Any]:
    """Options with a certificate for localhost, and `root`, the file to verify it with."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    made.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    made.private_key_pem.write_to_path(tmp_path / "server.key")
    authority.cert_pem.write_to_path(tmp_path / "root.pem")
    client = authority.issue_cert("client")
    client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    return {"certificate": str(tmp_path / "server.pem"), "key": str(tmp_path / "server.key")}


@pytest.fixture
def proxy(
    cluster: Any, balance: Any, certificates: dict[str, Any], tmp_path: Path
) -> Iterator[tuple[int, Path]]:
    """The port of a balancer with TLS, and the file to verify it with."""
    cluster.add()
    with balance(cluster.backends(), **certificates) as balancer:
        yield balancer.port, tmp_path / "root.pem"


def test_rest_and_grpc(proxy: tuple[int, Path]) -> None:
    port, root = proxy
    context = ssl.create_default_context(cafile=root)
    for is_http2, version in ((False, "HTTP/1.1"), (True, "HTTP/2")):
        with httpx.Client(verify=context, http2=is_http2, timeout=TIMEOUT_S) as client:
            url = f"https://localhost:{port}/v2/models/add_sub/infer"
            response = client.post(url, json=ADD_SUB)
        assert (response.http_version, response.status_code) == (version, 200)
        assert response.json()["outputs"][0]["data"] == [8] * 16
        assert f'h3=":{port}"' in response.headers["alt-svc"]
    with tritonclient.grpc.InferenceServerClient(
        f"localhost:{port}", ssl=True, root_certificates=str(root)
    ) as grpc:
        assert list(grpc.infer("add_sub", grpc_inputs(5)).as_numpy("OUTPUT0")[0]) == [10] * 16


class Http3Client(QuicConnectionProtocol):
    """Sends one request over HTTP/3."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.status = 0
        self.body = b""
        self.ended = asyncio.Event()

    async def post(self, port: int, path: str, content: bytes) -> tuple[int, bytes]:
        stream = self._quic.get_next_available_stream_id()
        authority = f"localhost:{port}".encode()
        headers = [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":authority", authority),
            (b":path", path.encode()),
        ]
        self.http.send_headers(stream, headers)
        self.http.send_data(stream, content, end_stream=True)
        self.transmit()
        async with asyncio.timeout(TIMEOUT_S):
            await self.ended.wait()
        return self.status, self.body

    def quic_event_received(self, event: QuicEvent) -> None:
        for found in self.http.handle_event(event):
            if isinstance(found, HeadersReceived):
                self.status = int(dict(found.headers)[b":status"])
            elif isinstance(found, DataReceived):
                self.body += found.data
            if getattr(found, "stream_ended", False):
                self.ended.set()


def test_http3(proxy: tuple[int, Path]) -> None:
    port, root = proxy
    configured = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name="localhost")
    configured.load_verify_locations(str(root))

    async def post() -> tuple[int, bytes]:
        async with connect(
            socket.gethostbyname("localhost"),
            port,
            configuration=configured,
            create_protocol=Http3Client,
        ) as client:
            found: tuple[int, bytes] = await client.post(
                port, "/v2/models/add_sub/infer", json.dumps(ADD_SUB).encode()
            )
            return found

    status, content = asyncio.run(post())
    assert status == 200
    assert json.loads(content)["outputs"][0]["data"] == [8] * 16


def test_certificates_of_clients(
    cluster: Any, balance: Any, certificates: dict[str, Any], tmp_path: Path
) -> None:
    cluster.add()
    options = {**certificates, "client_ca": str(tmp_path / "root.pem"), "http3": False}
    with balance(cluster.backends(), **options) as balancer:
        url = f"https://localhost:{balancer.port}/v2/health/ready"
        context = ssl.create_default_context(cafile=tmp_path / "root.pem")
        with pytest.raises(httpx.HTTPError), httpx.Client(verify=context) as client:
            client.get(url)
        context.load_cert_chain(tmp_path / "client.pem")
        with httpx.Client(verify=context) as client:
            response = client.get(url)
        assert response.status_code == 200
        assert "alt-svc" not in response.headers


def test_servers_with_tls(
    cluster: Any, balance: Any, certificates: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "server.yaml"
    tls = {
        "certificate_file": certificates["certificate"],
        "key_file": certificates["key"],
    }
    file.write_text(json.dumps({"frontends": {"http": {"tls": tls}, "grpc": {"tls": tls}}}))
    cluster.add(f"--config={file}")
    options = {"server_tls": True, "server_ca": str(tmp_path / "root.pem")}
    wrong = {**options, "server_name": "another"}
    with balance(cluster.backends(), wait=False, **wrong) as balancer:
        url = f"http://127.0.0.1:{balancer.port}/v2/models/add_sub/infer"
        assert httpx.post(url, json=ADD_SUB).status_code == 503
    with balance(cluster.backends(), **options, server_name="localhost") as balancer:
        url = f"http://127.0.0.1:{balancer.port}/v2/models/add_sub/infer"
        assert httpx.post(url, json=ADD_SUB).status_code == 200
        with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{balancer.port}") as grpc:
            assert grpc.infer("add_sub", grpc_inputs(5)).as_numpy("OUTPUT0")[0, 0] == 10
