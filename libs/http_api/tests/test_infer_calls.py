"""Inference calls through the real frontend to a fake engine."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import tracemalloc
import zlib

import numpy as np
import pytest

from tritonpy import InferResponse, Internal, InvalidArgument, Tensor, Unavailable
from tritonpy_http_api.infer_calls import model_version

from .raw_http import eventually

X = {"name": "X", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}
BODY = {"inputs": [X]}
ECHOED = {"name": "X", "datatype": "FP32", "shape": [3], "data": [1.0, 2.0, 3.0]}


def test_json_in_and_out(server):
    reply = server.infer({**BODY, "id": "q"})
    assert reply.status == 200
    assert reply.headers == {
        "content-type": "application/json",
        "content-length": str(len(reply.body)),
    }
    assert reply.json == {
        "id": "q",
        "model_name": "echo",
        "model_version": "1",
        "outputs": [ECHOED],
    }


def test_the_version_comes_from_the_path(server, engine):
    assert server.call("POST", "/v2/models/echo/versions/7/infer", BODY).status == 200
    assert engine.requests[-1].model_version == 7
    reply = server.call("POST", "/v2/models/echo/versions/99999999999999999999/infer", BODY)
    assert (reply.status, reply.error) == (
        400,
        (
            "failed to get model version from specified version string '99999999999999999999' (details: stol), "
            "version should be an integral value > 0"
        ),
    )


def test_versions_in_paths():
    assert [model_version(text) for text in ("", "0", "12")] == [-1, 0, 12]


def test_binary_in_and_out(server):
    array = np.arange(3, dtype=np.float32)
    header = {
        "inputs": [
            {"name": "X", "datatype": "FP32", "shape": [3], "parameters": {"binary_data_size": 12}}
        ],
        "outputs": [{"name": "X", "parameters": {"binary_data": True}}],
    }
    raw = json.dumps(header).encode()
    reply = server.infer(raw + array.tobytes(), {"Inference-Header-Content-Length": str(len(raw))})
    size = int(reply.headers["inference-header-content-length"])
    assert json.loads(reply.body[:size])["outputs"][0]["parameters"] == {"binary_data_size": 12}
    assert reply.body[size:] == array.tobytes()


def test_a_raw_binary_request(server):
    array = np.arange(5, dtype=np.float32)
    reply = server.infer(array.tobytes(), {"Inference-Header-Content-Length": "0"})
    size = int(reply.headers["inference-header-content-length"])
    assert json.loads(reply.body[:size])["outputs"][0]["shape"] == [5]
    assert reply.body[size:] == array.tobytes()


def test_a_refused_body_is_freed_without_garbage_collection(server):
    size = 2**20
    binary = {
        "name": "X",
        "datatype": "UINT8",
        "shape": [size],
        "parameters": {"binary_data_size": size},
    }
    head = json.dumps({"inputs": [binary]}).encode()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(16):
            reply = server.infer(
                head + bytes(size), {"Inference-Header-Content-Length": str(len(head))}, "nowhere"
            )
            assert reply.status == 404
        # the last body is freed when its connection ends, after the response
        eventually(lambda: tracemalloc.get_traced_memory()[0] < 4 * size, server)
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("size", [3, 30_000])
@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_compression_both_ways(server, size, encoding, pack):
    values = np.random.default_rng(1).random(size)
    body = json.dumps(
        {"inputs": [{**X, "datatype": "FP64", "shape": [size], "data": values.tolist()}]}
    ).encode()
    reply = server.infer(pack(body), {"Content-Encoding": encoding, "Accept-Encoding": encoding})
    assert reply.headers["content-encoding"] == encoding
    unpacked = json.loads(zlib.decompress(reply.body, wbits=47))
    assert unpacked["outputs"][0]["data"] == values.tolist()


def test_compressed_garbage_is_refused(server):
    for body in (b"garbage", b"garbage" * 10_000):
        reply = server.infer(body, {"Content-Encoding": "gzip"})
        assert reply.status == 400
        assert reply.error.startswith("failed to decompress the request body")


def test_an_unknown_compression_names_the_known_ones(server):
    reply = server.infer(BODY, {"Content-Encoding": "br"})
    assert (reply.status, reply.error) == (501, "Unsupported compression type")
    assert reply.headers["accept-encoding"] == "gzip, deflate"


def test_lookup_errors_take_precedence_over_body_errors(server):
    for body in (b"{", BODY):
        reply = server.infer(body, model="nope")
        assert (reply.status, reply.error) == (
            404,
            "Request for unknown model: 'nope' is not found",
        )
        reply = server.infer(body, model="decoupled")
        text = "HTTP end point doesn't support models with decoupled transaction policy"
        assert (reply.status, reply.error) == (501, text)


def test_only_request_errors_have_the_content_type_json(server, engine):
    engine.answer = lambda request: [
        InferResponse([], request.model_name, 1, error=Internal("boom"))
    ]
    replies = [
        server.infer({"inputs": [{"name": "X"}]}),
        server.infer(BODY),
        server.call("POST", "/v2/models/other/infer", BODY),
    ]
    assert [reply.headers["content-type"] for reply in replies] == [
        "application/json",
        "text/plain",
        "text/plain",
    ]


def test_errors_of_the_engine_keep_code_and_text(server, engine):
    engine.error = Unavailable("queue is full")
    assert (server.infer(BODY).status, server.infer(BODY).error) == (503, "queue is full")


def test_errors_of_the_model_keep_code_and_text(server, engine):
    engine.answer = lambda request: [InferResponse.failed(request, InvalidArgument("bad model"))]
    assert (server.infer(BODY).status, server.infer(BODY).error) == (400, "bad model")


def test_outputs_without_json_representation_are_an_error(server, engine):
    half = Tensor.from_numpy("X", np.zeros(1, np.float16))
    engine.answer = lambda request: [InferResponse([half], "echo", 1)]
    reply = server.infer(BODY)
    assert reply.status == 400
    assert reply.error.startswith("sending FP16 data via JSON is not supported")


@pytest.mark.parametrize("count", [0, 2])
def test_several_or_no_responses_are_an_error(server, engine, count):
    def answer(request):
        part = engine.echo(request)[0]
        part.final = False
        return [part] * count + [InferResponse((), final=True, empty=True)]

    engine.answer = answer
    reply = server.infer(BODY)
    assert (reply.status, reply.error) == (500, f"expected a single response, got {count}")


def test_a_response_with_an_empty_final_one_is_accepted(server, engine):
    def answer(request):
        part = engine.echo(request)[0]
        part.final = False
        return [part, InferResponse((), final=True, empty=True)]

    engine.answer = answer
    assert server.infer(BODY).json["outputs"] == [ECHOED]


def test_an_unexpected_error_is_logged_with_an_error_id(server, engine, caplog):
    def broken(request):
        return [InferResponse([None], "echo", 1)]

    engine.answer = broken
    for error in (None, RuntimeError("secret")):
        engine.error = error
        with caplog.at_level(logging.ERROR):
            reply = server.infer(BODY)
        assert reply.status == 500
        assert "secret" not in reply.error
        error_id = reply.error.split("error id ")[1].split()[0]
        assert any(error_id in record.getMessage() and record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"hello", 500),  # Triton's status for invalid JSON
        (b'{"inputs":[{"name"', 500),
        (b'{"id":"\xff","inputs":[]}', 500),
        (b"[" * 10_000, 400),
        (b'{"inputs":' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
    ],
)
def test_invalid_bodies_are_refused(server, body, status):
    assert server.infer(body).status == status
    assert server.infer(BODY).status == 200


def test_an_internal_error_is_500(server, engine):
    engine.error = Internal("broken")
    assert server.infer(BODY).status == 500
