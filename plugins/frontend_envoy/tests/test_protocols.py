"""HTTP/1.1, HTTP/2, HTTP/3 and gRPC on real Envoys."""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import ssl

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from pyqwest import HTTPVersion, ReadError, SyncClient, SyncHTTPTransport, WriteError

from tritonpy.testing import free_port

from .serving import COUNTING, PATIENCE_S

BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
INFER = "/v2/models/identity/infer"


@pytest.fixture
def repository(models):
    models.add("identity")
    return f"--model-repository={models.path}"


def tls_flags(pem, *protocols, mutual=False):
    for protocol in protocols:
        yield f"--{protocol}-use-ssl{'-mutual' if mutual else ''}=true"
        for name, file in (("server-cert", "server.pem"), ("server-key", "server.key"), ("root-cert", "root.pem")):
            yield f"--{protocol}-{name}={pem / file}"


def infer_over_grpc(address, **options):
    with grpc_client.InferenceServerClient(address, **options) as client:
        tensor = grpc_client.InferInput("IN", [2], "FP32").set_data_from_numpy(np.array([1, 2], np.float32))
        return client.infer("identity", [tensor]).as_numpy("OUT").tolist()


def infer_over(version, port, pem, **options):
    root = (pem / "root.pem").read_bytes()
    transport = SyncHTTPTransport(tls_ca_cert=root, http_version=version, timeout=PATIENCE_S, **options)
    return SyncClient(transport).post(f"https://localhost:{port}{INFER}", content=BODY)


def outputs_of(answer):
    return json.loads(answer.content)["outputs"][0]["data"]


def test_both_protocols_on_one_port(start, repository):
    port = free_port()
    served = start(repository, f"--http-port={port}", f"--grpc-port={port}", "--metrics-port=0", ports=False)
    assert served.ports["http"] == served.ports["grpc"] == port
    assert served.ask(INFER, BODY).json()["outputs"][0]["data"] == [1, 2]
    assert infer_over_grpc(f"127.0.0.1:{port}") == [1, 2]


@pytest.mark.parametrize("version", [HTTPVersion.HTTP1, HTTPVersion.HTTP2, HTTPVersion.HTTP3])
def test_every_version_of_http_is_spoken_on_an_encrypted_port(start, repository, pem, tmp_path, version):
    (tmp_path / "server.yaml").write_text(json.dumps({"transport": {"envoy": {"http3": True}}}))
    served = start(f"--config={tmp_path / 'server.yaml'}", repository, *tls_flags(pem, "http"))
    answer = infer_over(version, served.ports["http"], pem)
    assert (answer.status, outputs_of(answer)) == (200, [1, 2])
    if version is not HTTPVersion.HTTP3:
        assert answer.headers["alt-svc"] == f'h3=":{served.ports["http"]}"; ma=86400'


def test_an_address_may_be_a_name(start, repository):
    served = start(repository, "--http-address=localhost")
    assert served.ask(INFER, BODY).status == 200


def test_both_protocols_are_encrypted_on_one_port(start, repository, pem):
    port = free_port()
    flags = (f"--http-port={port}", f"--grpc-port={port}", "--metrics-port=0")
    served = start(repository, *flags, *tls_flags(pem, "http", "grpc"), ports=False)
    assert outputs_of(infer_over(HTTPVersion.HTTP2, port, pem)) == [1, 2]
    assert infer_over_grpc(f"localhost:{port}", ssl=True, root_certificates=str(pem / "root.pem")) == [1, 2]
    assert (pem / "server.key").read_text().splitlines()[1] not in served.log


def test_clients_without_a_certificate_are_refused_where_both_sides_need_one(start, repository, pem):
    served = start(repository, *tls_flags(pem, "http", mutual=True))
    with pytest.raises((ReadError, WriteError)):
        infer_over(HTTPVersion.HTTP2, served.ports["http"], pem)
    pair = {"tls_cert": (pem / "client.pem").read_bytes(), "tls_key": (pem / "client.key").read_bytes()}
    assert outputs_of(infer_over(HTTPVersion.HTTP2, served.ports["http"], pem, **pair)) == [1, 2]


def test_a_renewed_certificate_is_served_and_a_half_written_one_is_not(start, repository, pem, tmp_path):
    for name in ("server.pem", "server.key", "root.pem"):
        shutil.copy(pem / name, tmp_path / name)
    served = start(repository, *tls_flags(tmp_path, "http"))

    def serial():
        context = ssl.create_default_context(cafile=str(pem / "root.pem"))
        context.check_hostname = False
        with served.connect() as plain, context.wrap_socket(plain) as stream:
            return stream.getpeercert()["serialNumber"]

    before = serial()
    shutil.copy(pem / "client.pem", tmp_path / "server.pem")  # its key is still the old one
    served.until_logged("changed TLS files are not used")
    assert serial() == before
    shutil.copy(pem / "client.key", tmp_path / "server.key")
    served.until(lambda: serial() != before, "the new certificate is served")


def test_a_generate_call_streams_its_answers(start, models):
    models.add("counting", COUNTING, "TYPE_FP32", "TYPE_INT32", "[1]", "model_transaction_policy { decoupled: true }")
    served = start(f"--model-repository={models.path}")
    answer = served.ask("/v2/models/counting/generate_stream", b'{"IN": [1]}')
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = [json.loads(line.removeprefix("data: ")) for line in answer.body.decode().split("\n\n") if line]
    assert [event["OUT"] for event in events] == [0, 1, 2]


def test_a_large_body_in_and_out(start, repository):
    served = start(repository)
    data = np.arange(4_000_000, dtype=np.float32).tobytes()
    head = json.dumps(
        {
            "inputs": [
                {"name": "IN", "datatype": "FP32", "shape": [4_000_000], "parameters": {"binary_data_size": len(data)}}
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    answer = served.ask(INFER, head + data, {"Inference-Header-Content-Length": str(len(head))})
    assert answer.status == 200
    assert answer.body.endswith(data)


def test_a_call_without_a_body_is_answered_and_the_next_one_too(start, repository):
    served = start(repository)
    for _ in range(2):
        assert served.ask(INFER, b"", method="POST").json()["outputs"][0]["shape"] == [0]
        assert served.ask(INFER, BODY).status == 200


def test_an_unreadable_path_is_refused(start, repository):
    served = start(repository)
    for path in ("/v2/models/%ff/infer", "/%c3", "/%E2%82%AC%80"):
        answer = served.ask(path, BODY)
        assert (answer.status, answer.json()) == (400, {"error": "The path cannot be read: its escapes are no UTF-8"})
    readable = served.ask("/v2/models/%E2%82%AC/infer", BODY)
    assert readable.json() == {"error": "Request for unknown model: '€' is not found"}
    served.until_logged("refused a request from 127.0.0.1:[0-9]+: ")


def test_a_body_that_stands_still_is_refused(start, repository, tmp_path):
    (tmp_path / "server.yaml").write_text(json.dumps({"frontends": {"http": {"body_timeout_s": 0.3}}}))
    served = start(f"--config={tmp_path / 'server.yaml'}", repository)
    for path, begun in itertools.product((INFER, "/v2/repository/index"), ("", "{")):
        with served.connect() as slow:
            slow.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{begun}".encode())
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
    served.until_logged("refused a request from 127.0.0.1:[0-9]+: The request took too long to arrive")


def test_connections_beyond_the_limit_are_closed(start, repository, tmp_path):
    (tmp_path / "server.yaml").write_text(json.dumps({"frontends": {"http": {"max_connections": 1}}}))
    served = start(f"--config={tmp_path / 'server.yaml'}", repository)
    with served.connect() as first:
        assert is_live(first)
        with served.connect() as second:
            assert second.recv(1000) == b""
        assert is_live(first)


def is_live(connection):
    """Ask over an open connection whether the server is live."""
    connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
    with http.client.HTTPResponse(connection) as answer:
        answer.begin()
        answer.read()
        return answer.status == 200
