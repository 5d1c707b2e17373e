"""Inference responses report the load of the server to load balancers."""

from __future__ import annotations

import base64
import json
import logging
import socket
import struct
import time
from typing import Any

import grpc
import h2.connection
import h2.events
import httpx
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

from tests.conftest import ROOT, TIMEOUT_S
from tritonpy import running_server
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

ALWAYS = {"load_reports": {"always": True}}


@pytest.fixture(params=["h2", "grpcio"])
def server(request: Any) -> Any:
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {
            "http": {"port": 0, **ALWAYS},
            "grpc": {"port": 0, **ALWAYS},
            "metrics": False,
        },
        **({"transport": "grpcio"} if request.param == "grpcio" else {}),
    }
    with running_server(config) as running:
        yield running


def body() -> dict[str, Any]:
    names = ("INPUT0", "INPUT1")
    return {
        "inputs": [
            {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [4] * 16}
            for name in names
        ]
    }


def grpc_trailers(address: str, message: bytes) -> dict[bytes, bytes]:
    """Return the trailers of a call; clients of gRPC keep load reports to themselves."""
    host, _, port = address.rpartition(":")
    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    path = "/inference.GRPCInferenceService/ModelInfer"
    head = {":method": "POST", ":scheme": "http", ":path": path, ":authority": address}
    head |= {"content-type": "application/grpc", "te": "trailers"}
    connection.send_headers(1, list(head.items()))
    connection.send_data(1, struct.pack("!?I", False, len(message)) + message, end_stream=True)
    with socket.create_connection((host, int(port)), TIMEOUT_S) as stream:
        stream.sendall(connection.data_to_send())
        while received := stream.recv(65536):
            for event in connection.receive_data(received):
                if isinstance(event, h2.events.TrailersReceived):
                    return dict(event.headers)
            stream.sendall(connection.data_to_send())
    raise AssertionError("the call has no trailers")


def test_http_and_grpc_responses_have_a_report(server: Any) -> None:
    message = ModelInferRequest(model_name="add_sub")
    for each in body()["inputs"]:
        message.inputs.add(name=each["name"], datatype="INT32", shape=[1, 16])
        message.raw_input_contents.append(np.array(each["data"], np.int32).tobytes())
    url = f"http://{server.http}/v2/models/add_sub/infer"
    deadline = time.monotonic() + TIMEOUT_S
    header, binary = "", b""
    with httpx.Client() as client:
        while "queue_ms.add_sub" not in header or b"queue_ms.add_sub" not in binary:
            assert time.monotonic() < deadline
            header = client.post(url, json=body()).headers.get("endpoint-load-metrics", "")
            trailers = grpc_trailers(server.grpc, message.SerializeToString())
            assert trailers[b"grpc-status"] == b"0"
            text = trailers.get(b"endpoint-load-metrics-bin", b"")
            binary = base64.b64decode(text + b"=" * (-len(text) % 4))
        missing = client.post(url.replace("add_sub", "none"), json=body())
    document = json.loads(header.removeprefix("JSON "))
    assert document["rps_fractional"] > 0
    assert document["eps"] == 0
    assert 0 <= document["cpu_utilization"] <= 1
    assert 0 < document["application_utilization"] < 2
    assert "endpoint-load-metrics" not in missing.headers


def test_streams_report_the_load_at_the_requested_interval(server: Any) -> None:
    interval = Duration(nanos=120_000_000).SerializeToString()
    request = b"\x0a" + bytes([len(interval)]) + interval
    with grpc.insecure_channel(server.grpc) as channel:
        stream = channel.unary_stream("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics")
        call = stream(request, timeout=TIMEOUT_S)
        started = time.monotonic()
        reports = [next(call) for _ in range(4)]
        assert time.monotonic() - started >= 0.3
        call.cancel()
        # the first field is the share of the processors, or the next one if that is 0
        assert all(report[0] in (0x09, 0x11) for report in reports)
        with pytest.raises(grpc.RpcError, match="unable to parse the request"):
            list(stream(b"\xff", timeout=TIMEOUT_S))


def test_streams_end_with_the_server() -> None:
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {"grpc": {"port": 0, **ALWAYS}, "http": False, "metrics": False},
    }
    with running_server(config) as running:
        channel = grpc.insecure_channel(running.grpc)
        stream = channel.unary_stream("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics")
        call = stream(b"", timeout=TIMEOUT_S)
        assert next(call)
    assert list(call) == []
    channel.close()


def test_without_the_option_no_response_has_a_report(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
    }
    with caplog.at_level(logging.WARNING), running_server(config) as running:
        url = f"http://{running.http}/v2/models/add_sub/infer"
        with httpx.Client() as client:
            response = client.post(url, json=body())
    assert response.status_code == 200
    assert "endpoint-load-metrics" not in response.headers
