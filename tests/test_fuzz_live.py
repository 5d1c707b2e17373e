"""Garbage for a live server, over both protocols: it answers clearly, forgets it, and serves on.

The seed is new in every run and printed; TRITONPY_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import http.client
import json
import os
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2

SEED = int(os.environ.get("TRITONPY_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
TIMEOUT_S = 30
INFER = "/v2/models/add_sub/infer"
ROW = list(range(16))
REQUEST: dict[str, Any] = {
    "id": "fuzz",
    "inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": ROW} for name in ("INPUT0", "INPUT1")],
    "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": False}}],
}
ODD: list[Any] = [
    None, True, -1, 0, 1.5, 2**31, 2**63, 2**64, -(2**70), 1e308, "", "x" * 5000, "\x00", "\ud800", "INT32", "INT33", "BYTES", "FP16",
    [], {}, [[]], [-1, 16], [2**62, 2**62], [0, 16], [1] * 40, ["1", 16], [1, 2, 3], {"data": 1}, {"classification": -3},
    {"binary_data_size": 10**12}, {"binary_data_size": -1}, {"shared_memory_region": "no"},
]  # fmt: skip
DEEP = "[" * 10_000 + "]" * 10_000
METHODS = ("ModelInfer", "ModelMetadata", "ModelConfig", "ModelStatistics", "ModelReady", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload")


@pytest.fixture(scope="module")
def rng() -> random.Random:
    print(f"TRITONPY_FUZZ_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture(scope="module")
def target(serve: Any, tmp_path_factory: pytest.TempPathFactory, onnx_identity: Any) -> Iterator[Any]:
    """A server of its own; after all garbage it must serve, have leaked nothing and have logged no surprise."""
    from tritonpy.testing import ModelRepository

    repository = ModelRepository(tmp_path_factory.mktemp("fuzz") / "models")
    examples = os.path.join(os.path.dirname(os.path.dirname(__file__)), "examples", "models", "add_sub")
    os.symlink(examples, repository.path / "add_sub")
    repository.add("texts", versions={1: {"model.onnx": onnx_identity("BYTES", ["batch", 2])}})
    with serve(f"--model-repository={repository.path}", "--model-control-mode=explicit", "--load-model=*") as served:
        assert_serves(served)
        process = psutil.Process(served.process.pid)
        descriptors, threads = process.num_fds(), process.num_threads()
        yield served
        assert_serves(served)
        served.wait(lambda: process.num_fds() <= descriptors + 8, "descriptors are closed again")
        # the pool of the event loop grows to its own bound, whatever comes
        assert process.num_threads() <= threads + min(32, (os.cpu_count() or 1) + 4) + 2
        assert "Traceback" not in served.log, served.log[-4000:]
        assert "incident" not in served.log, served.log[-4000:]


def assert_serves(served: Any) -> None:
    values = np.array([ROW], np.int32)
    for protocol, address in ((tritonclient.http, served.http), (tritonclient.grpc, served.grpc)):
        inputs = [protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for given in inputs:
            given.set_data_from_numpy(values)
        with protocol.InferenceServerClient(address) as client:
            assert (client.infer("add_sub", inputs).as_numpy("OUTPUT0") == 2 * values).all()


def post(served: Any, body: bytes, path: str = INFER, **headers: str) -> int:
    """Send a whole request; the answer must be a good one or a clear error. Return its status."""
    answer = served.ask(path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    if answer.status != 200:
        assert_clear(answer.status, answer.body)
    return int(answer.status)


def assert_clear(status: int, body: bytes) -> None:
    assert 400 <= status < 600, (status, body)
    error = json.loads(body)
    assert list(error) == ["error"], body
    assert error["error"], status
    assert "incident" not in error["error"], error


def mutated(rng: random.Random) -> Any:
    """Return REQUEST with one to three places changed, dropped or doubled."""
    document = copy.deepcopy(REQUEST)
    for _ in range(rng.randint(1, 3)):
        at: Any = document
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(at[key], (dict, list)) and at[key] and rng.random() < 0.7:
                at = at[key]
                continue
            action = rng.random()
            if action < 0.6:
                at[key] = copy.deepcopy(rng.choice(ODD))
            elif action < 0.8:
                del at[key]
            elif isinstance(at, list):
                at.append(copy.deepcopy(at[key]))
            else:
                at[f"{key} too"] = at[key]
            break
    return document


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """Return `whole` with bytes changed, cut off or put in."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) or 1)
        action = rng.randrange(4)
        if action == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif action == 1:
            del data[at : at + rng.randint(1, 20)]
        elif action == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        else:
            del data[at:]
    return bytes(data)


def test_changed_documents_are_answered_clearly(target: Any, rng: random.Random) -> None:
    statuses = {post(target, json.dumps(mutated(rng)).encode()) for _ in range(400)}
    assert 400 in statuses


def test_damaged_bytes_are_answered_clearly(target: Any, rng: random.Random) -> None:
    whole = json.dumps(REQUEST).encode()
    for _ in range(300):
        post(target, damaged(rng, whole))


def test_damaged_binary_requests_are_answered_clearly(target: Any, rng: random.Random) -> None:
    head: dict[str, Any] = {"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "parameters": {"binary_data_size": 64}} for name in ("INPUT0", "INPUT1")]}
    lengths = ["0", "-1", "1", "99999999999999999999", "0x10", "", " ", "1e3", "ٱ".encode().decode("latin-1")]
    for _ in range(200):
        head["inputs"][rng.randrange(2)]["parameters"]["binary_data_size"] = rng.choice([64, 64, 63, 0, -64, 2**40, "64", None])
        text = json.dumps(head).encode()
        length = rng.choice([str(len(text)), str(len(text) + rng.randint(-9, 200)), *lengths])
        post(target, text + rng.randbytes(rng.choice([128, 128, 127, 0, 300])), Inference_Header_Content_Length=length)


def test_texts_with_wrong_lengths_are_answered_clearly(target: Any, rng: random.Random) -> None:
    for _ in range(100):
        data = b"".join(struct.pack("<I", rng.choice([0, 1, 3, 2**31, 2**32 - 1])) + rng.randbytes(rng.randint(0, 4)) for _ in range(2))
        head = json.dumps({"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": len(data)}}]}).encode()
        post(target, head + data, "/v2/models/texts/infer", Inference_Header_Content_Length=str(len(head)))


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        f'{{"inputs": {DEEP}}}',
        f'{{"inputs": [{{"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "data": {DEEP}}}]}}',
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        '{"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, -16], "data": [1]}]}',
        '{"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [9223372036854775807, 16], "data": [1]}]}',
        '{"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [4294967296, 4294967296], "data": []}]}',
        '{"inputs": [{"name": "INPUT0", "datatype": "WHAT", "shape": [1, 16], "data": [1]}]}',
        '{"inputs": []}', "{}", "null", "1", '"text"', "", "\ufeff{}", "NaN", '{"inputs": [NaN]}', "\x00",
    ],
)  # fmt: skip
def test_hostile_documents_are_refused(target: Any, body: str) -> None:
    for path in (INFER, "/v2/models/texts/infer"):
        assert post(target, body.encode()) >= 400, path


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"id": "\xff"}', b'{"inputs": [{"name": "\xc3\x28"}]}', b'{"id": "\xed\xa0\x80"}'])
def test_invalid_utf_8_is_refused(target: Any, body: bytes) -> None:
    assert post(target, body) >= 400


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, gzip", ""])
def test_bodies_that_are_not_compressed_as_said_are_refused(target: Any, rng: random.Random, encoding: str) -> None:
    packed = gzip.compress(json.dumps(REQUEST).encode())
    for body in (b"", b"no gzip", packed[:20], damaged(rng, packed), packed + b"more", gzip.compress(b"[" * 10_000_000)):
        post(target, body, Content_Encoding=encoding)


@pytest.mark.parametrize("path", ["/v2/repository/index", "/v2/repository/models/add_sub/load", "/v2/repository/models/nowhere/unload"])
def test_management_calls_take_garbage(target: Any, rng: random.Random, path: str) -> None:
    bodies = [DEEP, "1", "[]", '{"ready": 3}', '{"parameters": 1}', '{"parameters": {"config": 1}}', '{"parameters": {"config": "{"}}',
              '{"parameters": {"config": "[]"}}', '{"parameters": {"file:1/model.onnx": "A"}}', '{"parameters": {"config": "{}", "file:../../x": "QQ=="}}',
              '{"parameters": {"what": "x"}}', '{"parameters": {"config": "{\\"input\\": [{\\"dims\\": [-7]}]}"}}']  # fmt: skip
    for body in bodies:
        post(target, body.encode(), path)
    for _ in range(20):
        post(target, damaged(rng, rng.choice(bodies[2:]).encode()), path)


def test_paths_and_methods_that_make_no_sense_are_refused(target: Any) -> None:
    paths = ["/", "//", "/v2/models//infer", "/v2/models/%00/infer", "/v2/models/%ff%fe/infer", "/v2/models/a%2fb/infer", "/v2/models/add_sub/versions/99999999999999999999/infer",
             "/v2/models/add_sub/versions/-1/infer", "/v2/models/add_sub/versions/x", "/v2/models/../infer", "/v2/" + "x" * 20_000, "/v2?" + "q" * 5000, "/v2/models/add_sub/infer/"]  # fmt: skip
    for path in paths:
        for body in (None, b"{}"):
            answer = target.ask(path, body)
            if answer.status != 200:
                assert 400 <= answer.status < 600
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", target.ports["http"], timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request(method, INFER)
            assert connection.getresponse().status >= 400, method


def exchange(served: Any, sent: bytes, frontend: str = "http", last: bool = True) -> bytes:
    """Send bytes, say whether they were the last, and return everything that comes back until the server closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", served.ports[frontend]), TIMEOUT_S) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        if last:
            connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65536):
            received += part
    return received


def raw(body: bytes, *headers: str, path: str = INFER) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: fuzz", *headers, "", ""]).encode() + body


def test_bytes_that_are_no_http_close_the_connection(target: Any, rng: random.Random) -> None:
    good = raw(b"{}", "Content-Length: 2")
    for _ in range(100):
        received = exchange(target, rng.choice([rng.randbytes(rng.randint(1, 400)), damaged(rng, good), b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" + rng.randbytes(60)]))
        assert received == b"" or received.startswith(b"HTTP/1.1 "), received[:200]
        assert b"incident" not in received


@pytest.mark.parametrize(
    "sent",
    [
        raw(b"{", "Content-Length: 1000"),
        raw(b"", "Content-Length: 99999999999999999999"),
        raw(b"", "Content-Length: -5"),
        raw(b"", "Content-Length: 5", "Content-Length: 6"),
        raw(b"5\r\n{}", "Transfer-Encoding: chunked"),
        raw(b"zz\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
        raw(b"FFFFFFFFFFFFFFFFF\r\n{}", "Transfer-Encoding: chunked"),
        raw(b"", f"X: {'y' * 100_000}"),
        raw(b"", "Expect: 100-continue", "Content-Length: 10"),
    ],
)
def test_half_and_wrong_messages_end_with_the_connection(target: Any, sent: bytes) -> None:
    received = exchange(target, sent)
    assert b" 200 " not in received.partition(b"\r\n")[0]


def test_clients_that_leave_at_once_are_forgotten(target: Any, rng: random.Random) -> None:
    whole = raw(json.dumps(REQUEST).encode(), f"Content-Length: {len(json.dumps(REQUEST))}")
    for _ in range(100):
        connection = socket.create_connection(("127.0.0.1", target.ports["http"]), TIMEOUT_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of a goodbye
        connection.sendall(whole[: rng.randint(0, len(whole))])
        connection.close()


def test_chunked_bodies_are_read(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(text[at : at + 7]), text[at : at + 7]) for at in range(0, len(text), 7))
    answer = exchange(target, raw(chunks + b"0\r\n\r\n", "Transfer-Encoding: chunked", "Connection: close"), last=False)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"OUTPUT0"' in answer


def test_pipelined_requests_are_answered_in_order(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    good, bad = raw(text, f"Content-Length: {len(text)}"), raw(b"{", "Content-Length: 1")
    closing = raw(b"{", "Content-Length: 1", "Connection: close")
    answer = exchange(target, good + bad + good + good + closing, last=False)
    assert [answer[at + 9 : at + 12] for at in range(len(answer)) if answer.startswith(b"HTTP/1.1 ", at)] == [b"200", b"400", b"200", b"200", b"400"]


def test_pipelined_requests_of_a_client_that_leaves_are_forgotten(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    for _ in range(20):
        exchange(target, raw(text, f"Content-Length: {len(text)}") * 10)


def grpc_request(rng: random.Random) -> Any:
    """Return a ModelInferRequest that is wrong in most cases."""
    request = service_pb2.ModelInferRequest(model_name=rng.choice(["add_sub", "add_sub", "texts", "", "no\x00where"]), model_version=rng.choice(["", "", "1", "x", "-1", "9" * 30]))
    for name in rng.choice([["INPUT0", "INPUT1"], ["INPUT0"], ["INPUT0", "INPUT0"], ["IN"], ["INPUT0", "INPUT1", "INPUT2"], []]):
        shape = rng.choice([[1, 16], [1, 16], [-1, 16], [2**62, 4], [0, 16], [], [16], [2**63 - 1] * 3, [1] * 100])
        given = request.inputs.add(name=name, datatype=rng.choice(["INT32", "INT32", "INT32", "WHAT", "", "BYTES", "BF16"]), shape=shape)
        if rng.random() < 0.2:
            given.contents.int_contents.extend(range(rng.choice([0, 15, 16])))
        if rng.random() < 0.1:
            given.parameters["shared_memory_region"].string_param = "no"
    for _ in range(rng.choice([len(request.inputs), len(request.inputs), 0, 5])):
        request.raw_input_contents.append(rng.randbytes(rng.choice([64, 64, 63, 0, 1000])))
    if rng.random() < 0.3:
        request.outputs.add(name=rng.choice(["OUTPUT0", "WHAT", ""])).parameters["classification"].int64_param = rng.choice([1, -1, 2**62])
    if rng.random() < 0.3:
        request.parameters[rng.choice(["triton_x", "sequence_id", "timeout", "priority", "mine"])].string_param = "text"
    return request


def assert_clear_rpc_error(error: grpc.RpcError) -> None:
    assert error.code() not in {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}, error
    assert error.details()
    assert "incident" not in error.details()


@pytest.fixture
def channel(target: Any) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target.grpc) as opened:
        yield opened


def test_wrong_messages_are_answered_clearly(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(400):
        try:
            call(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_are_answered_clearly(channel: grpc.Channel, rng: random.Random, method: str) -> None:
    call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}", bytes)
    for _ in range(20):
        try:
            call(damaged(rng, grpc_request(rng).SerializeToString()) + rng.randbytes(20), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


def test_a_stream_of_wrong_messages_answers_each(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer", bytes, service_pb2.ModelStreamInferResponse.FromString)
    answers = list(call((grpc_request(rng).SerializeToString() for _ in range(100)), timeout=TIMEOUT_S))
    assert len(answers) == 100
    assert any(answer.error_message for answer in answers)
    assert not any("incident" in answer.error_message for answer in answers)


def test_calls_that_are_cancelled_are_forgotten(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(100):
        call.future(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S).cancel()


def test_bytes_that_are_no_http_2_close_the_connection(target: Any, rng: random.Random) -> None:
    for _ in range(50):
        exchange(target, rng.choice([b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) + rng.randbytes(rng.randint(1, 200)), "grpc")
