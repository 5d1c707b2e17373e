"""HTTP/1.1, gRPC and REST over HTTP/2 on one port, in cleartext and with TLS."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import httpx
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import trustme
from tritonclient.utils import InferenceServerException

from tests.conftest import TIMEOUT_S, ServerProcess, tensors_text

ADDRESS = re.compile(
    r"http on (?:127\.0\.0\.1|localhost):(\d+), grpc on (?:127\.0\.0\.1|localhost):(\d+)"
)
LARGE = 40 * 1024 * 1024  # bytes of a tensor, more than every window


def port_of(served: ServerProcess) -> int:
    """Return the common port of HTTP and gRPC."""
    found = ADDRESS.search(served.log)
    assert found is not None, served.log
    assert found[1] == found[2]
    return int(found[1])


@pytest.fixture(scope="module")
def single(
    serve: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, int]]:
    from tests.conftest import Models

    models = Models(tmp_path_factory.mktemp("single") / "models")
    models.example("add_sub")
    models.identity("large", "FP32", ["rows", "columns"], tensors_text("FP32", "-1, -1"))
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    with serve(
        f"--model-repository={models.path}", "--single-port=0", "--metrics-port=0", ports=False
    ) as served:
        yield served, port_of(served)


@contextlib.contextmanager
def over_http2(port: int, **options: Any) -> Iterator[httpx.Client]:
    scheme = "https" if "verify" in options else "http"
    with httpx.Client(
        base_url=f"{scheme}://localhost:{port}",
        http1="verify" in options,
        http2=True,
        timeout=TIMEOUT_S,
        **options,
    ) as client:
        yield client


def add_sub_body(value: int) -> dict[str, Any]:
    names = ("INPUT0", "INPUT1")
    return {
        "inputs": [
            {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [value] * 16}
            for name in names
        ]
    }


def infer_over_grpc(client: Any, value: int) -> list[int]:
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        tensor = tritonclient.grpc.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.full((1, 16), value, np.int32))
        inputs.append(tensor)
    return list(client.infer("add_sub", inputs).as_numpy("OUTPUT0")[0])


def test_every_protocol_is_served_on_the_port(single: tuple[ServerProcess, int]) -> None:
    _, port = single
    with tritonclient.http.InferenceServerClient(f"localhost:{port}") as client:
        assert client.is_server_ready()
    with tritonclient.grpc.InferenceServerClient(f"localhost:{port}") as client:
        assert infer_over_grpc(client, 3) == [6] * 16
    with over_http2(port) as client:
        response = client.post("/v2/models/add_sub/infer", json=add_sub_body(4))
        assert (response.http_version, response.status_code) == ("HTTP/2", 200)
        assert response.json()["outputs"][0]["data"] == [8] * 16


def test_management_requests_and_errors_are_the_same_over_both_versions_of_http(
    single: tuple[ServerProcess, int],
) -> None:
    _, port = single
    calls = [
        ("GET", "/v2", None),
        ("GET", "/v2/models/add_sub/config", None),
        ("POST", "/v2/repository/index", "{}"),
        ("POST", "/v2/models/missing/infer", "{}"),
        ("POST", "/v2/models/add_sub/infer", "no JSON"),
        ("HEAD", "/v2", None),
        ("GET", "/nowhere", None),
    ]
    with httpx.Client(base_url=f"http://localhost:{port}") as http1, over_http2(port) as http2:
        for method, path, content in calls:
            first, second = (
                client.request(method, path, content=content) for client in (http1, http2)
            )
            assert second.http_version == "HTTP/2"
            assert (second.status_code, second.text) == (first.status_code, first.text)
            assert second.headers.get("content-type") == first.headers.get("content-type")
            assert "transfer-encoding" not in second.headers


@pytest.mark.parametrize("has_length", [True, False])
def test_a_large_tensor_round_trips_over_http2(
    single: tuple[ServerProcess, int], has_length: bool
) -> None:
    _, port = single
    data = np.arange(LARGE // 4, dtype=np.float32).tobytes()
    request = {
        "inputs": [
            {
                "name": "IN",
                "datatype": "FP32",
                "shape": [1, LARGE // 4],
                "parameters": {"binary_data_size": LARGE},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    head = json.dumps(request).encode()
    body = head + data
    parts = (body[start : start + 1_000_000] for start in range(0, len(body), 1_000_000))
    with over_http2(port) as client:
        response = client.post(
            "/v2/models/large/infer",
            content=body if has_length else parts,
            headers={"inference-header-content-length": str(len(head))},
        )
    assert response.status_code == 200, response.text[:300]
    assert response.content[int(response.headers["inference-header-content-length"]) :] == data


def test_a_stream_of_responses_waits_for_a_slow_client(single: tuple[ServerProcess, int]) -> None:
    _, port = single
    count = 5000
    with (
        over_http2(port) as client,
        client.stream("POST", "/v2/models/repeat/generate_stream", json={"IN": count}) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert sum(line.startswith("data:") for line in response.iter_lines()) == count


class RawHttp2:
    """A client that violates the protocol."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        config = h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()

    def begin(self, headers: list[tuple[str, str]], body: bytes = b"") -> int:
        """Send a request; return its stream."""
        stream = self.connection.get_next_available_stream_id()
        self.connection.send_headers(stream, headers, end_stream=not body)
        if body:
            self.connection.send_data(stream, body, end_stream=True)
        self.socket.sendall(self.connection.data_to_send())
        return stream

    def responses(self, count: int) -> dict[int, tuple[int, bytes]]:
        """Return status and body of the next `count` responses by stream.

        The status of a reset stream is its negated error code.
        """
        statuses: dict[int, int] = {}
        bodies: dict[int, bytes] = defaultdict(bytes)
        ended: set[int] = set()
        while len(ended) < count:
            for event in self.connection.receive_data(self.socket.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    statuses[event.stream_id] = int(dict(event.headers)[b":status"])
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] += event.data
                elif isinstance(event, h2.events.StreamReset):
                    statuses.setdefault(event.stream_id, -int(event.error_code))
                    ended.add(event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    ended.add(event.stream_id)
        return {stream: (statuses[stream], bodies[stream]) for stream in ended}

    def request(self, headers: list[tuple[str, str]], body: bytes = b"") -> int:
        """Return the status of the response, or the negated error code of the stream's reset."""
        stream = self.begin(headers, body)
        return self.responses(1)[stream][0]

    def close(self) -> None:
        self.socket.close()


def test_many_streams_of_one_connection_are_independent(single: tuple[ServerProcess, int]) -> None:
    head = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v2/models/add_sub/infer"),
        (":authority", "host"),
    ]
    with contextlib.closing(RawHttp2(single[1])) as client:
        values = {
            client.begin(head, json.dumps(add_sub_body(value)).encode()): value
            for value in range(100)
        }
        found = client.responses(len(values))
    assert {
        stream: (status, json.loads(body)["outputs"][0]["data"])
        for stream, (status, body) in found.items()
    } == {stream: (200, [2 * value] * 16) for stream, value in values.items()}


@pytest.mark.parametrize(
    ("method", "path", "authority"),
    [
        ("GET", "/v2/health/live HTTP/1.1", "host"),
        ("GET /v2/health/live HTTP/1.1 ", "/", "host"),
        ("GET", "/v2/health/live\t", "host"),
        ("GET", "/v2/health/live", "host other"),
        ("GET", "", "host"),
    ],
)
def test_pseudo_headers_cannot_smuggle_a_second_request(
    single: tuple[ServerProcess, int], method: str, path: str, authority: str
) -> None:
    with contextlib.closing(RawHttp2(single[1])) as client:
        headers = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", authority),
        ]
        assert client.request(headers) == 400
        good = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/v2/health/live"),
            (":authority", "host"),
        ]
        assert client.request(good) == 200


def test_connection_specific_headers_reset_the_stream(single: tuple[ServerProcess, int]) -> None:
    with contextlib.closing(RawHttp2(single[1])) as client:
        head = [(":method", "POST"), (":scheme", "http"), (":path", "/v2"), (":authority", "host")]
        assert client.request([*head, ("transfer-encoding", "chunked")], b"0\r\n\r\n") == -1
        assert client.request([*head, ("content-length", "5")], b"too long") == -1


@pytest.mark.parametrize("first", [b"P", b"PRI * HT", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_client_that_stalls_in_its_first_bytes_blocks_no_other(
    single: tuple[ServerProcess, int], first: bytes
) -> None:
    served, port = single
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(first)
        with over_http2(port) as client:
            assert client.get("/v2/health/live").status_code == 200
    assert served.process.poll() is None


def test_the_first_bytes_may_come_one_by_one(single: tuple[ServerProcess, int]) -> None:
    with socket.create_connection(("127.0.0.1", single[1]), TIMEOUT_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"POST /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n":
            client.sendall(bytes([byte]))
        received = b""
        while part := client.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 405 ")


def test_garbage_is_refused_like_on_the_http_port(single: tuple[ServerProcess, int]) -> None:
    with socket.create_connection(("127.0.0.1", single[1]), TIMEOUT_S) as client:
        client.sendall(b"\x00\x01\x02\x03 garbage\r\n\r\n")
        received = b""
        while part := client.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 400 ")


def test_access_rules_hold_for_each_protocol(serve: Any, models: Any) -> None:
    models.example("add_sub")
    flags = [
        "--http-restricted-api=inference:secret=key",
        "--grpc-restricted-protocol=inference:secret=key",
        "--single-port=0",
        "--metrics-port=0",
    ]
    with serve(f"--model-repository={models.path}", *flags, ports=False) as served:
        port = port_of(served)
        with over_http2(port) as client:
            assert client.post("/v2/models/add_sub/infer", json=add_sub_body(1)).status_code == 403
            allowed = client.post(
                "/v2/models/add_sub/infer", json=add_sub_body(1), headers={"secret": "key"}
            )
            assert allowed.status_code == 200
        with (
            tritonclient.grpc.InferenceServerClient(f"localhost:{port}") as grpc_client,
            pytest.raises(InferenceServerException, match="secret"),
        ):
            infer_over_grpc(grpc_client, 1)


def test_the_limits_of_each_frontend_hold_for_its_connections(
    serve: Any, models: Any, tmp_path: Path
) -> None:
    models.example("add_sub")
    config = tmp_path / "server.yaml"
    config.write_text(
        f"single_port: 0\nrepositories: [{{url: {models.path}}}]\n"
        "frontends:\n  http: {max_connections: 1, max_body_bytes: 100}\n  grpc: {}\n  metrics: {port: 0}\n"
    )
    request = b"GET /v2/health/live HTTP/1.1\r\nhost: a\r\n\r\n"
    with serve(f"--config={config}", ports=False) as server:
        port = port_of(server)
        with over_http2(port) as client:
            assert client.post("/v2/models/add_sub/infer", json=add_sub_body(1)).status_code == 413
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as first:
            first.sendall(request)
            assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
            with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as second:
                second.sendall(request)
                assert second.recv(65536).startswith(b"HTTP/1.1 503 ")
            with tritonclient.grpc.InferenceServerClient(f"localhost:{port}") as client:
                assert client.is_server_live()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[ssl.SSLContext, list[str]]:
    """A client context that trusts the server, and the flags that encrypt both frontends."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    chain, key, root = tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "root.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    made.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(root)
    context = ssl.create_default_context(cafile=root)
    return context, [f"certificate_file: {chain}", f"key_file: {key}"]


def test_with_tls_the_offered_protocol_chooses_the_frontend(
    serve: Any, models: Any, certificate: tuple[ssl.SSLContext, list[str]], tmp_path: Path
) -> None:
    models.example("add_sub")
    context, files = certificate
    tls = f"{{{', '.join(files)}}}"
    config = tmp_path / "server.yaml"
    config.write_text(
        f"single_port: 0\nrepositories: [{{url: {models.path}}}]\n"
        f"frontends:\n  http: {{tls: {tls}}}\n  grpc: {{tls: {tls}}}\n  metrics: {{port: 0}}\n"
    )
    with serve(f"--config={config}", ports=False) as served:
        port = port_of(served)
        with httpx.Client(verify=context) as client:
            response = client.get(f"https://localhost:{port}/v2/health/ready")
            assert (response.http_version, response.status_code) == ("HTTP/1.1", 200)
        with over_http2(port, verify=context) as client:
            response = client.post("/v2/models/add_sub/infer", json=add_sub_body(5))
            assert (response.http_version, response.status_code) == ("HTTP/2", 200)
        root = str(tmp_path / "root.pem")
        with tritonclient.grpc.InferenceServerClient(
            f"localhost:{port}", ssl=True, root_certificates=root
        ) as client:
            assert infer_over_grpc(client, 2) == [4] * 16


def test_one_encrypted_frontend_alone_is_a_startup_error(
    serve: Any, models: Any, certificate: tuple[ssl.SSLContext, list[str]], tmp_path: Path
) -> None:
    models.example("add_sub")
    config = tmp_path / "server.yaml"
    config.write_text(
        f"single_port: 0\nrepositories: [{{url: {models.path}}}]\n"
        f"frontends:\n  http: {{tls: {{{', '.join(certificate[1])}}}}}\n  metrics: false\n"
    )
    with serve(f"--config={config}", ports=False, until=None) as served:
        assert served.wait_until_exit() == 1
        assert "single_port: configure a certificate" in served.log


def test_a_taken_port_is_named(serve: Any, models: Any) -> None:
    models.example("add_sub")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [f"--model-repository={models.path}", f"--single-port={port}", "--metrics-port=0"]
        with serve(*flags, ports=False, until=None) as served:
            assert served.wait_until_exit() == 1
            assert f"single_port: cannot listen on 127.0.0.1:{port}" in served.log


@pytest.mark.parametrize("flag", ["--frontend-processes=2", "--transport=grpcio"])
def test_options_that_exclude_a_single_port_are_named(serve: Any, models: Any, flag: str) -> None:
    models.example("add_sub")
    with serve(
        f"--model-repository={models.path}", "--single-port=0", flag, ports=False, until=None
    ) as served:
        assert served.wait_until_exit() == 1
        assert "--single-port" in served.log


def test_requests_in_flight_are_answered_when_the_server_drains(
    serve: Any, models: Any, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    models.toy("gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}')
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [3]}]}
    with serve(
        f"--model-repository={models.path}", "--single-port=0", "--metrics-port=0", ports=False
    ) as served:
        port = port_of(served)
        answered: list[httpx.Response] = []

        def infer() -> None:
            with over_http2(port) as client:
                answered.append(client.post("/v2/models/gate/infer", json=body))

        thread = threading.Thread(target=infer)
        thread.start()
        served.wait(gate.with_suffix(".entered").exists, "the request is being executed")
        served.process.terminate()
        served.wait_until_logged("Waiting for in-flight requests")
        gate.touch()
        assert served.wait_until_exit() == 0
        thread.join()
    assert [response.json()["outputs"][0]["data"] for response in answered] == [[3.0]]
