"""Reading of responses, from a server that sends exactly the bytes of the test."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.conformance import http_response
from tests.conformance.exchange import Http
from tests.conformance.grpc_response import readable
from tests.conformance.inference import Inference, given, text
from tests.conformance.tensor_data import values
from tritonpy_protos import grpc_service_pb2 as pb

HEAD = b'{"outputs":[{"name":"A","datatype":"INT16","shape":[2],"parameters":{"binary_data_size":4}},{"name":"B","datatype":"FP32","shape":[0],"data":[]}]}'


@contextlib.contextmanager
def serve_response(response: bytes | None):
    """A server that reads one request and sends `answer`; None keeps the connection silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        received: list[bytes] = []

        def serve() -> None:
            connection = stack.enter_context(listener.accept()[0])
            received.append(connection.recv(65536))
            if response is not None:
                connection.sendall(response)
                connection.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], received
        thread.join()


def send_and_read(response: bytes | None) -> dict:
    with serve_response(response) as (port, _):
        return http_response.send(port, Http("/v2", timeout_s=0.2 if response is None else 30))


def test_the_bytes_of_a_request_arrive_as_they_are():
    request = Inference("m", {"X": given("INT8", 1, -1)}).binary()
    with serve_response(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (port, received):
        assert http_response.send(port, request) == {"status": 200, "headers": {}}
    assert received == [request.wire()]


def test_json_and_binary_tensors_are_read():
    response = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n"
        % (len(HEAD), len(HEAD) + 4)
    )
    found = send_and_read(response + HEAD + b"\x01\x00\xff\xff")
    assert found["headers"] == {"content-type": "application/octet-stream"}
    assert found["json"]["outputs"][0]["binary"] == [1, -1]
    assert found["json"]["outputs"][1] == {
        "name": "B",
        "datatype": "FP32",
        "shape": [0],
        "data": [],
    }


def test_surplus_bytes_are_reported():
    response = (
        b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n"
        % (
            len(HEAD),
            len(HEAD) + 7,
        )
    )
    assert send_and_read(response + HEAD + b"\x01\x00\xff\xff and")["json"]["surplus bytes"] == 3


def test_other_bodies_are_text_and_events_a_list():
    assert send_and_read(b"HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\n{x\xff") == {
        "status": 404,
        "headers": {},
        "text": "{x\\xff",
    }
    events = b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {"a":1}\n\ndata: {"a":2}\n\n'
    assert send_and_read(events)["events"] == [{"a": 1}, {"a": 2}]


def test_a_timeout_and_a_closed_connection_are_results():
    assert send_and_read(None) == http_response.NO_ANSWER
    assert send_and_read(b"") == {"connection": "closed"}


def test_tensors_are_read_by_their_datatype():
    assert values("FP16", b"\x00\x3c") == [1.0]
    assert values("BOOL", b"\x01\x00") == [True, False]
    assert values("BF16", b"\x80\x3f") == [0x3F80]
    assert values("BYTES", given("BYTES", "a", b"\xff", "", '{"a": 1}', "{x").wire()) == [
        "a",
        "\\xff",
        "",
        {"a": 1},
        "{x",
    ]


def test_raw_outputs_of_a_message_are_read_into_them():
    message = pb.ModelInferResponse(model_name="m", raw_output_contents=[b"\x07\x00"])
    message.outputs.add(name="A", datatype="UINT16", shape=[1])
    assert readable(message) == {
        "model_name": "m",
        "outputs": [{"name": "A", "datatype": "UINT16", "shape": ["1"], "raw": [7]}],
    }


def test_an_inference_is_the_same_over_both_protocols():
    inference = Inference(
        "m", {"X": text({"k": 1})}, ("Y",), {"p": True, "q": 3, "r": "s", "t": 0.5}, "i", "2"
    )
    message = inference.message()
    assert inference.binary().body.endswith(message.raw_input_contents[0])
    assert (message.model_version, message.outputs[0].name, message.parameters["p"].bool_param) == (
        "2",
        "Y",
        True,
    )
    assert inference.json().path == "/v2/models/m/versions/2/infer"
