from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonfrontend
import tritonserver
import trustme
from tritonfrontend import KServeGrpc, KServeHttp, Metrics

LOCAL = "127.0.0.1"


def test_clients_of_every_protocol_are_served(server: tritonserver.Server) -> None:
    http = KServeHttp(server, KServeHttp.Options(address=LOCAL, port=0))
    grpc = KServeGrpc(server, KServeGrpc.Options(address=LOCAL, port=0))
    metrics = Metrics(server, Metrics.Options(address=LOCAL, port=0))
    with http, grpc, metrics:
        for module, service in ((tritonclient.http, http), (tritonclient.grpc, grpc)):
            with module.InferenceServerClient(service.address()) as client:
                assert client.is_server_ready()
                tensor = module.InferInput("fp32_in", [2, 2], "FP32")
                tensor.set_data_from_numpy(np.ones((2, 2), np.float32))
                assert client.infer("echo", [tensor]).as_numpy("fp32_out").sum() == 4
        with urllib.request.urlopen(f"http://{metrics.address()}/metrics") as response:
            assert b"nv_inference_request_success" in response.read()
    for service in (http, grpc, metrics):
        assert service.address() == ""
        service.stop()
    assert server.ready(), "the server serves without frontends"


def test_a_frontend_starts_again(server: tritonserver.Server) -> None:
    service = KServeHttp(server, KServeHttp.Options(LOCAL, 0))
    for _ in range(2):
        service.start()
        with pytest.raises(tritonfrontend.InvalidArgumentError, match="runs already"):
            service.start()
        service.stop()


def test_a_port_in_use_is_an_error(server: tritonserver.Server) -> None:
    with socket.create_server((LOCAL, 0)) as taken:
        service = KServeHttp(server, KServeHttp.Options(LOCAL, taken.getsockname()[1]))
        with pytest.raises(tritonfrontend.InternalError, match="cannot listen"):
            service.start()
    service.start()
    service.stop()


def test_a_certificate_encrypts_the_port(server: tritonserver.Server, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    certificate, key, trusted = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    options = KServeGrpc.Options(
        LOCAL, 0, use_ssl=True, server_cert=str(certificate), server_key=str(key)
    )
    with (
        KServeGrpc(server, options) as service,
        tritonclient.grpc.InferenceServerClient(
            service.address().replace(LOCAL, "localhost"),
            ssl=True, root_certificates=str(trusted),
        ) as client,
    ):  # fmt: skip
        assert client.is_server_ready()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (KServeHttp, {"port": 70000}),
        (KServeHttp, {"port": -1}),
        (KServeHttp, {"port": "8000"}),
        (KServeHttp, {"thread_count": 0}),
        (KServeHttp, {"address": 3}),
        (KServeGrpc, {"keepalive_time_ms": -5}),
        (Metrics, {"port": 2.5}),
    ],
)
def test_wrong_options_are_refused(kind: type, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        kind.Options(**options)  # type: ignore[attr-defined]


def test_options_of_another_frontend_are_refused(server: tritonserver.Server) -> None:
    with pytest.raises(tritonfrontend.InvalidArgumentError, match=r"type KServeGrpc\.Options"):
        KServeGrpc(server, KServeHttp.Options())


def test_a_frontend_needs_a_started_server() -> None:
    with pytest.raises(tritonfrontend.InvalidArgumentError, match="Server not started"):
        KServeHttp(tritonserver.Server())


def test_the_default_ports_are_those_of_triton() -> None:
    kinds = (KServeHttp, KServeGrpc, Metrics)
    assert [kind.Options().port for kind in kinds] == [8000, 8001, 8002]
