"""TLS, Unix domain sockets and limits, configured with flags and with server.yaml."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import trustme

from tests.conftest import TIMEOUT_S

INFER = "/v2/models/scalar/infer"


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with certificates and keys of a server and a client, and the CA certificate of both."""
    folder, authority = tmp_path_factory.mktemp("pem"), trustme.CA()
    authority.cert_pem.write_to_path(folder / "root.pem")
    for name, made in (
        ("server", authority.issue_cert("localhost", "127.0.0.1")),
        ("client", authority.issue_cert("me")),
    ):
        made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        made.private_key_pem.write_to_path(folder / f"{name}.key")
    return folder


def tls_flags(pem, *protocols, mutual=False):
    for protocol in protocols:
        yield f"--{protocol}-use-ssl{'-mutual' if mutual else ''}=true"
        yield from (
            f"--{protocol}-{name}={pem / file}"
            for name, file in (
                ("server-cert", "server.pem"),
                ("server-key", "server.key"),
                ("root-cert", "root.pem"),
            )
        )


def infer(client, module=tritonclient.grpc):
    tensor = module.InferInput("IN", [2, 1], "FP32").set_data_from_numpy(
        np.array([[1], [2]], np.float32)
    )
    return client.infer("scalar", [tensor]).as_numpy("OUT").ravel().tolist()


HTTP_CLIENT = """
import sys
import numpy as np
import tritonclient.http as http
address, root, *pair = sys.argv[1:]
options = {"ca_certs": root, **dict(zip(("certfile", "keyfile"), pair))}
with http.InferenceServerClient(address, ssl=True, ssl_options=options) as client:
    tensor = http.InferInput("IN", [2, 1], "FP32")
    tensor.set_data_from_numpy(np.array([[1], [2]], np.float32))
    print(client.infer("scalar", [tensor]).as_numpy("OUT").ravel().tolist())
"""


def http_client(served, pem, *pair):
    """Run the real HTTP client in a separate process, because it changes Python's sockets."""
    address = f"localhost:{served.ports['http']}"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        HTTP_CLIENT,
        address,
        str(pem / "root.pem"),
        *map(str, pair),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture
def scalar(models):
    """The flags of a repository with one model."""
    config = 'max_batch_size: 8 input [{ name: "IN" data_type: TYPE_FP32 dims: [1] reshape: { shape: [] } }]'
    config += ' output [{ name: "OUT" data_type: TYPE_FP32 dims: [1] reshape: { shape: [] } }]'
    models.identity("scalar", "FP32", ["batch"], config)
    return f"--model-repository={models.path}"


@pytest.mark.parametrize("mutual", [False, True])
def test_both_protocols_are_encrypted_for_the_real_clients(serve, scalar, pem, mutual):
    pair = (pem / "client.pem", pem / "client.key") if mutual else ()
    with serve(scalar, *tls_flags(pem, "http", "grpc", mutual=mutual)) as served:
        done = http_client(served, pem, *pair)
        assert (done.stdout, done.stderr) == ("[1.0, 2.0]\n", "")
        files = {"root_certificates": str(pem / "root.pem")}
        if mutual:
            files |= {"certificate_chain": str(pair[0]), "private_key": str(pair[1])}
        with tritonclient.grpc.InferenceServerClient(
            f"localhost:{served.ports['grpc']}", ssl=True, **files
        ) as client:
            assert infer(client) == [1, 2]
        for name in ("server.key", "client.key"):
            assert (pem / name).read_text().splitlines()[1] not in served.log


def test_clients_without_a_certificate_are_refused_with_mutual_tls(serve, scalar, pem):
    with serve(scalar, *tls_flags(pem, "http", "grpc", mutual=True)) as served:
        assert http_client(served, pem).returncode != 0
        credentials = grpc.ssl_channel_credentials((pem / "root.pem").read_bytes())
        with grpc.secure_channel(f"localhost:{served.ports['grpc']}", credentials) as channel:
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(
                    b"", timeout=TIMEOUT_S
                )
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (
            http_client(served, pem, pem / "client.pem", pem / "client.key").stdout
            == "[1.0, 2.0]\n"
        )


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    ("flag", "file", "why"),
    [
        ("server-cert", "nowhere.pem", "cannot read the file: No such file or directory"),
        ("server-cert", "server.key", "the file has no certificate in PEM format"),
        ("server-key", "client.key", "the key does not match the first certificate of "),
        ("server-key", "root.pem", "the file has no private key in PEM format"),
    ],
)
def test_a_wrong_file_stops_the_start_with_its_name_and_the_reason(
    serve, scalar, pem, protocol, flag, file, why
):
    flags = [one for one in tls_flags(pem, protocol) if f"-{flag}=" not in one]
    with serve(scalar, *flags, f"--{protocol}-{flag}={pem / file}", until=None) as served:
        assert served.wait_until_exit() == 1
        key = {"server-cert": "certificate_file", "server-key": "key_file"}[flag]
        assert f"frontends.{protocol}.tls.{key} '{pem / file}': {why}" in served.log
        assert "Traceback" not in served.log


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_missing_file_stops_the_start(serve, scalar, protocol):
    with serve(scalar, f"--{protocol}-use-ssl=true", until=None) as served:
        assert served.wait_until_exit() == 1
        assert "TLS needs tls.certificate_file and tls.key_file" in served.log


def test_a_renewed_certificate_is_served_without_a_restart(serve, scalar, pem, tmp_path):
    for name in ("server.pem", "server.key", "root.pem"):
        shutil.copy(pem / name, tmp_path / name)
    settings = {
        name: {"port": 0, "tls": {"certificate_file": "server.pem", "key_file": "server.key"}}
        for name in ("http", "grpc")
    }
    (tmp_path / "server.yaml").write_text(json.dumps({"frontends": settings}))
    context = ssl.create_default_context(cafile=str(tmp_path / "root.pem"))
    context.check_hostname = False

    def serial(port):
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain,
            context.wrap_socket(plain) as stream,
        ):
            return stream.getpeercert()["serialNumber"]

    with serve(
        f"--config={tmp_path / 'server.yaml'}", scalar, "--metrics-port=0", ports=False
    ) as served:
        ports = [served.ports["http"], served.ports["grpc"]]
        before = {serial(port) for port in ports}
        for name in ("pem", "key"):
            shutil.copy(pem / f"client.{name}", tmp_path / f"server.{name}")
        after = served.wait(
            lambda: {serial(port) for port in ports} - before, "the new one is served"
        )
        served.wait(lambda: {serial(port) for port in ports} == after, "on both ports")
        assert len(before) == len(after) == 1


def test_both_protocols_are_served_on_unix_sockets(serve, scalar, tmp_path):
    http, rpc = tmp_path / "http.sock", tmp_path / "grpc.sock"
    flags = (f"--http-address=unix:{http}", f"--grpc-address=unix:{rpc}", "--metrics-port=0")
    with serve(scalar, *flags, ports=False) as served:
        with tritonclient.grpc.InferenceServerClient(f"unix:{rpc}") as client:
            assert infer(client) == [1, 2]
        assert b"200 OK" in raw_exchange(
            http, b"GET /v2/health/ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        with serve(scalar, *flags, ports=False, until=None) as second:
            assert second.wait_until_exit() == 1
            assert f"cannot listen on unix:{http}: another server listens there" in second.log
        served.process.kill()
        served.process.wait()
        assert http.exists()
    with serve(
        scalar, *flags, ports=False
    ) as served:  # the socket that the killed server left does not block the new one
        served.process.terminate()
        assert served.wait_until_exit() == 0
    assert os.listdir(tmp_path) == ["models"]


def raw_exchange(path, sent):
    """Return everything that the server sends over a Unix socket."""
    received = b""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(TIMEOUT_S)
        stream.connect(str(path))
        stream.sendall(sent)
        while part := stream.recv(65536):
            received += part
    return received


def test_servers_share_ports_with_the_reuse_flags(serve, scalar, free_ports):
    http, rpc = free_ports(2)
    flags = (
        f"--http-port={http}",
        f"--grpc-port={rpc}",
        "--metrics-port=0",
        "--reuse-http-port=1",
        "--reuse-grpc-port=1",
    )
    with serve(scalar, *flags, ports=False) as one, serve(scalar, *flags, ports=False) as other:
        assert one.ports["http"] == other.ports["http"] == http
        assert one.request("/v2/health/ready").status == 200


def test_every_grpc_connection_flag_is_accepted(serve, scalar):
    numbers = {
        "keepalive-time": 10000, "keepalive-timeout": 5000, "http2-max-pings-without-data": 0,
        "http2-min-recv-ping-interval-without-data": 1000, "http2-max-ping-strikes": 0, "max-connection-age": 60000,
        "max-connection-age-grace": 1000, "infer-allocation-pool-size": 4, "infer-thread-count": 3,
    }  # fmt: skip
    flags = [f"--grpc-{name}={value}" for name, value in numbers.items()]
    more = (
        "--grpc-keepalive-permit-without-calls=true",
        "--grpc-infer-response-compression-level=high",
        "--http-thread-count=4",
    )
    with (
        serve(scalar, *flags, *more) as served,
        tritonclient.grpc.InferenceServerClient(served.grpc) as client,
    ):
        assert infer(client) == [1, 2]
        for name in (
            "grpc-infer-allocation-pool-size",
            "grpc-infer-thread-count",
            "http-thread-count",
        ):
            assert f"--{name} has no effect: " in served.log


def test_the_largest_input_bounds_json_and_not_binary_tensors(serve, scalar):
    with serve(scalar, "--http-max-input-size=1000") as served:
        head = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [8, 1], "data": [1] * 8}]}
        assert served.request(INFER, json.dumps(head)).status == 200
        padded = json.dumps(head) + " " * 1000
        response = served.request(INFER, padded)
        assert response.status == 400
        text = f"request JSON size of {len(padded)} bytes exceeds the maximum allowed input size of 1000 bytes."
        assert (
            response.json()["error"] == f"{text} Use --http-max-input-size to increase the limit."
        )
        response = served.request("/v2/repository/index", padded)
        assert text in response.json()["error"]
        binary = json.dumps(
            {
                "inputs": [
                    {
                        "name": "IN",
                        "datatype": "FP32",
                        "shape": [500, 1],
                        "parameters": {"binary_data_size": 2000},
                    }
                ]
            }
        )
        response = served.request(
            INFER,
            binary.encode() + bytes(2000),
            {"Inference-Header-Content-Length": str(len(binary))},
        )
        assert (
            "batch-size must be <= 8" in response.json()["error"]
        )  # the error is about the batch size, not about the input size


def test_slow_and_oversized_requests_are_dropped_and_others_are_served(serve, scalar, tmp_path):
    limits = {
        "port": 0,
        "head_timeout_s": 4,
        "body_timeout_s": 4,
        "max_head_size": 4096,
        "max_connections": 40,
    }
    (tmp_path / "server.yaml").write_text(
        json.dumps({"frontends": {"http": limits, "grpc": {"port": 0}}})
    )
    with serve(
        f"--config={tmp_path / 'server.yaml'}", scalar, "--metrics-port=0", ports=False
    ) as served:
        with contextlib.ExitStack() as stack:
            slow = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", served.ports["http"]), TIMEOUT_S)
                )
                for _ in range(30)
            ]
            for number, stream in enumerate(slow):
                stream.sendall(
                    b"POST "
                    if number % 2
                    else f"POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{{".encode()
                )
            assert served.request("/v2/health/ready").status == 200
            for stream in slow:
                assert b" 408 " in stream.recv(1000)
        assert b" 431 " in served.exchange(b"GET /v2 HTTP/1.1\r\nname: " + b"a" * 5000, last=False)
        served.wait_until_logged(
            "refused a request from 127.0.0.1:[0-9]+: The request took too long to arrive"
        )
        assert served.request("/v2/health/ready").status == 200
