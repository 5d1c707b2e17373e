"""Oversized bodies are refused without being kept in memory."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from tritonpy import InvalidArgument
from tritonpy_http_api.body_size import is_unlimited, refuse_size
from tritonpy_http_api.infer_cycle import InferCycle

from .raw_http import BODY, chunked, connect, read_one, request

LIMIT = 1000
LENGTH = b"inference-header-content-length"
USE = "Use --http-max-input-size to increase the limit."


@pytest.mark.parametrize(
    ("headers", "any_size"),
    [
        ({}, False),
        ({LENGTH: b"100"}, True),
        ({LENGTH: b"1000"}, True),
        ({LENGTH: b"1001"}, False),
        ({LENGTH: b"0"}, False),
        ({LENGTH: b"-1"}, False),
        ({LENGTH: b"9" * 5000}, False),
        ({LENGTH: b"100", b"content-encoding": b"gzip"}, False),
        ({LENGTH: b"100", b"content-encoding": b"identity"}, True),
    ],
)
def test_only_binary_tensors_have_unlimited_size(headers, any_size):
    assert is_unlimited(headers, LIMIT) is any_size


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            {},
            "request JSON size of 2000 bytes exceeds the maximum allowed input size of 1000 bytes.",
        ),
        (
            {LENGTH: b"1500"},
            "request JSON size of 1500 bytes exceeds the maximum allowed input size of 1000 bytes.",
        ),
        (
            {LENGTH: b"0"},
            "Raw input has a byte_size (2000 bytes) that exceeds the maximum allowed value of 1000 bytes.",
        ),
        (
            {b"content-encoding": b"gzip"},
            "Compressed data size (2000 bytes) exceeds the maximum allowed value of 1000 bytes.",
        ),
    ],
)
def test_the_error_depends_on_the_kind_of_body(headers, text):
    with pytest.raises(InvalidArgument) as error:
        refuse_size(headers, 2000, LIMIT)
    assert error.value.message == f"{text} {USE}"


def padded(size):
    return BODY + b" " * (size - len(BODY))


@pytest.mark.parametrize("in_chunks", [False, True])
def test_an_oversized_body_is_dropped_on_arrival(start_server, in_chunks, monkeypatch):
    server = start_server(max_input_size=LIMIT)
    kept = []
    take = InferCycle.take

    def watched(self, part):
        take(self, part)
        kept.append(sum(map(len, self.parts)))

    monkeypatch.setattr(InferCycle, "take", watched)
    body = padded(10**7)
    parts = [body[at : at + 10**5] for at in range(0, len(body), 10**5)]
    sent = (
        request(chunked(*parts), "transfer-encoding: chunked\r\n", length=False)
        if in_chunks
        else request(body)
    )
    with connect(server) as stream:
        stream.sendall(sent)
        status, _, answer = read_one(stream)
        assert status == 400
        assert json.loads(answer)["error"].startswith(f"request JSON size of {10**7} bytes exceeds")
        assert max(kept) < 300_000
        stream.sendall(request())
        assert read_one(stream)[0] == 200


def test_an_unknown_model_takes_precedence_over_the_size(start_server):
    server = start_server(max_input_size=LIMIT)
    assert server.infer(padded(300_000), model="unknown").error.startswith(
        "Request for unknown model"
    )


@pytest.mark.parametrize("path", ["/v2/repository/index", "/v2/models/echo/generate"])
def test_other_calls_drop_oversized_bodies(start_server, path):
    server = start_server(max_input_size=LIMIT)
    reply = server.call("POST", path, padded(10**6))
    assert (
        reply.error
        == f"request JSON size of {10**6} bytes exceeds the maximum allowed input size of 1000 bytes. {USE}"
    )


def peak_memory():
    """Return the peak memory of this process in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_concurrent_decompression_bombs_use_bounded_memory(start_server, engine, pack):
    server = start_server(max_input_size=10**6)
    name = "gzip" if pack is gzip.compress else "deflate"
    bomb = request(pack(bytes(10**8)), f"content-encoding: {name}\r\n")
    small = request(pack(bytes(3 * 10**6)), f"content-encoding: {name}\r\n")
    nested = request(pack(pack(bytes(10**8))), f"content-encoding: {name}\r\n")
    assert server.infer(BODY).status == 200
    before = peak_memory()
    raws = [connect(server) for _ in range(30)]
    for raw in raws:
        raw.sendall(bomb + small + nested)
    for raw in raws:
        answers = [json.loads(read_one(raw)[2])["error"] for _ in range(3)]
        assert [answer.partition(" ")[0] for answer in answers] == [
            "Decompressed",
            "Decompressed",
            "failed",
        ]
        raw.__exit__()
    assert peak_memory() - before < 10**8, "a single decompressed body would be as large"
    assert server.infer(BODY).status == 200
