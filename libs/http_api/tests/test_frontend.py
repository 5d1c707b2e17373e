from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tritonpy import StartupError
from tritonpy_config.server import decode_options
from tritonpy_http_api.errors import STOPPING
from tritonpy_http_api.options import HttpApiOptions

BODY = json.dumps(
    {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
SECONDS = 30

CLIENT = """
import sys
import numpy as np
import tritonclient.http as http
with http.InferenceServerClient(sys.argv[1]) as client:
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("echo")
    assert client.get_server_metadata()["name"] == "triton"
    assert client.get_model_metadata("echo")["name"] == "echo"
    assert client.get_model_config("echo")["name"] == "echo"
    assert client.get_inference_statistics("echo")["model_stats"][0]["name"] == "echo"
    assert client.get_model_repository_index()[0]["state"] == "READY"
    client.load_model("echo", config="{}", files={"file:1/model.onnx": b"abc"})
    client.unload_model("echo", unload_dependents=True)
    for array, datatype in (
        (np.arange(6, dtype=np.float32).reshape(2, 3), "FP32"),
        (np.array([[b"a", b""]], np.object_), "BYTES"),
        (np.ones(3, np.float16), "FP16"),
        (np.empty((0, 2), np.int64), "INT64"),
    ):
        for binary in (True, False):
            if datatype == "FP16" and not binary:
                continue
            for packing in (None, "gzip", "deflate"):
                given = http.InferInput("X", list(array.shape), datatype)
                given.set_data_from_numpy(array, binary_data=binary)
                wanted = [http.InferRequestedOutput("X", binary_data=binary)]
                result = client.infer(
                    "echo", [given], outputs=wanted, request_id="7",
                    request_compression_algorithm=packing, response_compression_algorithm=packing,
                )
                assert result.get_response()["id"] == "7"
                found = result.as_numpy("X")
                if datatype == "BYTES" and not binary:
                    found = np.array([[item.encode() for item in found.ravel()]], np.object_)
                np.testing.assert_array_equal(found, array)
            np.testing.assert_array_equal(client.infer("echo", [given]).as_numpy("X"), array)
print("served")
"""


def test_tritonclient_works_with_every_method(server):
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, server.frontend.address()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("served\n", "")


def test_port_0_picks_a_free_port(server):
    host, _, port = server.frontend.address().rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0


def test_a_port_in_use_is_reported(server, start_server):
    with pytest.raises(
        StartupError,
        match=rf"cannot listen for HTTP on 127.0.0.1:{server.port}: Address already in use",
    ):
        start_server(port=server.port)


def test_an_unavailable_address_is_reported(start_server):
    with pytest.raises(StartupError, match=r"cannot listen for HTTP on 192.0.2.1:0"):
        start_server(host="192.0.2.1")


def test_a_shared_port_is_shared(start_server):
    first = start_server(reuse_port=True)
    second = start_server(reuse_port=True, port=first.port)
    assert first.frontend.address() == second.frontend.address()


def test_the_host_option_overrides_the_server_host(start_server):
    assert start_server(host="localhost").frontend.address().startswith("localhost:")


def test_signal_handlers_are_left_alone(start_server):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    start_server()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_draining_finishes_requests_and_refuses_new_ones(server, engine):
    engine.hold = True
    live, idle = server.connect(), [server.connect(), server.connect()]
    for other in idle:
        other.request("GET", "/v2")
        other.getresponse().read()
    live.request("POST", "/v2/models/echo/infer", BODY)
    assert engine.arrived.wait(SECONDS)
    drained = server.begin_draining()
    for other, method, path in zip(
        idle, ("POST", "GET"), ("/v2/models/echo/infer", "/v2"), strict=True
    ):
        other.request(method, path, BODY)
        reply = other.getresponse()
        assert reply.status == 503
        assert json.loads(reply.read())["error"].startswith("Server is stopping")
    late = server.connect()
    for path in ("/v2", "/v2/health/live"):
        late.request("GET", path)
        reply = late.getresponse()
        assert (reply.status, json.loads(reply.read())["error"]) == (503, STOPPING)
    late.close()
    assert not drained.is_set()
    server.loop.call_soon_threadsafe(engine.release)
    assert live.getresponse().status == 200
    assert drained.wait(SECONDS)
    for connection in (live, *idle):
        connection.close()


def test_draining_waits_until_a_slow_client_has_its_response(server):
    numbers = list(range(3_000_000))
    body = json.dumps(
        {"inputs": [{"name": "X", "datatype": "INT64", "shape": [len(numbers)], "data": numbers}]}
    )
    live = server.connect()
    live.request("POST", "/v2/models/echo/infer", body)
    reply = live.getresponse()  # its head; most of the body does not fit what the kernel takes
    assert reply.status == 200
    drained = server.begin_draining()
    assert not drained.is_set()
    assert json.loads(reply.read())["outputs"][0]["data"] == numbers
    assert drained.wait(SECONDS)
    live.close()


def test_stop_closes_connections_and_cancels_requests(engine, start_server):
    engine.hold = True
    server = start_server()
    live = server.connect()
    live.request("POST", "/v2/models/echo/infer", BODY)
    assert engine.arrived.wait(SECONDS)
    server.run(server.frontend.stop())
    with pytest.raises((ConnectionError, OSError)):
        live.getresponse()
    assert engine.requests[0].cancelled
    live.close()


def test_stop_without_start_does_nothing(server):
    server.run(server.frontend.stop())
    server.run(server.frontend.stop())
    server.run(server.frontend.drain())


def test_max_input_size_accepts_units():
    assert (
        decode_options(HttpApiOptions, {"max-input-size": "2MiB"}, "frontends.http").max_input_size
        == 2 * 2**20
    )
