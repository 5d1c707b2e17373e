"""Garbage over HTTP: the server returns clear errors, frees its resources and keeps serving."""

from __future__ import annotations

import contextlib
import copy
import gzip
import http.client
import json
import random
import socket
import struct
from typing import Any

import pytest

TIMEOUT_S = 30
INFER = "/v2/models/add_sub/infer"
ROW = list(range(16))
REQUEST: dict[str, Any] = {
    "id": "fuzz",
    "inputs": [
        {"name": name, "datatype": "INT32", "shape": [1, 16], "data": ROW}
        for name in ("INPUT0", "INPUT1")
    ],
    "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": False}}],
}
ODD: list[Any] = [
    None, True, -1, 0, 1.5, 2**31, 2**63, 2**64, -(2**70), 1e308, "", "x" * 5000, "\x00", "\ud800", "INT32", "INT33", "BYTES", "FP16",
    [], {}, [[]], [-1, 16], [2**62, 2**62], [0, 16], [1] * 40, ["1", 16], [1, 2, 3], {"data": 1}, {"classification": -3},
    {"binary_data_size": 10**12}, {"binary_data_size": -1}, {"shared_memory_region": "no"},
]  # fmt: skip
DEEP = "[" * 10_000 + "]" * 10_000


def post(served: Any, body: bytes, path: str = INFER, **headers: str) -> int:
    """Send a whole request and return its status; the response must be good or a clear error."""
    response = served.request(
        path, body, {name.replace("_", "-"): value for name, value in headers.items()}
    )
    if response.status != 200:
        assert_clear(response.status, response.body)
    return int(response.status)


def assert_clear(status: int, body: bytes) -> None:
    assert 400 <= status < 600, (status, body)
    error = json.loads(body)
    assert list(error) == ["error"], body
    assert error["error"], status
    assert "error id" not in error["error"], error


def mutated(rng: random.Random) -> Any:
    """Return REQUEST with one to three values changed, removed or duplicated."""
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


def test_changed_documents_get_clear_errors(target: Any, rng: random.Random) -> None:
    statuses = {post(target, json.dumps(mutated(rng)).encode()) for _ in range(400)}
    assert 400 in statuses


def test_corrupted_bytes_get_clear_errors(target: Any, rng: random.Random, damaged: Any) -> None:
    whole = json.dumps(REQUEST).encode()
    for _ in range(300):
        post(target, damaged(whole))


def test_corrupted_binary_requests_get_clear_errors(target: Any, rng: random.Random) -> None:
    head: dict[str, Any] = {
        "inputs": [
            {
                "name": name,
                "datatype": "INT32",
                "shape": [1, 16],
                "parameters": {"binary_data_size": 64},
            }
            for name in ("INPUT0", "INPUT1")
        ]
    }
    lengths = [
        "0",
        "-1",
        "1",
        "99999999999999999999",
        "0x10",
        "",
        " ",
        "1e3",
        "ٱ".encode().decode("latin-1"),
    ]
    for _ in range(200):
        head["inputs"][rng.randrange(2)]["parameters"]["binary_data_size"] = rng.choice(
            [64, 64, 63, 0, -64, 2**40, "64", None]
        )
        text = json.dumps(head).encode()
        length = rng.choice([str(len(text)), str(len(text) + rng.randint(-9, 200)), *lengths])
        post(
            target,
            text + rng.randbytes(rng.choice([128, 128, 127, 0, 300])),
            Inference_Header_Content_Length=length,
        )


def test_strings_with_wrong_lengths_get_clear_errors(target: Any, rng: random.Random) -> None:
    for _ in range(100):
        data = b"".join(
            struct.pack("<I", rng.choice([0, 1, 3, 2**31, 2**32 - 1]))
            + rng.randbytes(rng.randint(0, 4))
            for _ in range(2)
        )
        head = json.dumps(
            {
                "inputs": [
                    {
                        "name": "IN",
                        "datatype": "BYTES",
                        "shape": [1, 2],
                        "parameters": {"binary_data_size": len(data)},
                    }
                ]
            }
        ).encode()
        post(
            target,
            head + data,
            "/v2/models/texts/infer",
            Inference_Header_Content_Length=str(len(head)),
        )


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
def test_hostile_documents_are_rejected(target: Any, body: str) -> None:
    for path in (INFER, "/v2/models/texts/infer"):
        assert post(target, body.encode()) >= 400, path


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b'{"id": "\xff"}',
        b'{"inputs": [{"name": "\xc3\x28"}]}',
        b'{"id": "\xed\xa0\x80"}',
    ],
)
def test_invalid_utf_8_is_refused(target: Any, body: bytes) -> None:
    assert post(target, body) >= 400


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, gzip", ""])
def test_bodies_with_a_wrong_content_encoding_are_rejected(
    target: Any, rng: random.Random, encoding: str, damaged: Any
) -> None:
    packed = gzip.compress(json.dumps(REQUEST).encode())
    for body in (
        b"",
        b"no gzip",
        packed[:20],
        damaged(packed),
        packed + b"more",
        gzip.compress(b"[" * 10_000_000),
    ):
        post(target, body, Content_Encoding=encoding)


MANAGEMENT = [
    "/v2/repository/index",
    "/v2/repository/models/add_sub/load",
    "/v2/repository/models/nowhere/unload",
    "/v2/systemsharedmemory/region/r/register",
    "/v2/systemsharedmemory/region/r/unregister",
    "/v2/cudasharedmemory/region/r/register",
    "/v2/trace/setting",
    "/v2/models/texts/trace/setting",
    "/v2/logging",
    "/v2/models/texts/generate",
    "/v2/models/texts/generate_stream",
    "/v2/models/nowhere/generate",
]


@pytest.mark.parametrize("path", MANAGEMENT)
def test_management_calls_survive_garbage(
    target: Any, rng: random.Random, path: str, damaged: Any
) -> None:
    bodies = [DEEP, "1", "[]", '{"ready": 3}', '{"parameters": 1}', '{"parameters": {"config": 1}}', '{"parameters": {"config": "{"}}',
              '{"parameters": {"config": "[]"}}', '{"parameters": {"file:1/model.onnx": "A"}}', '{"parameters": {"config": "{}", "file:../../x": "QQ=="}}',
              '{"key": "/../x", "byte_size": 1}', '{"key": "/x", "byte_size": -1, "offset": 18446744073709551616}', '{"raw_handle": {"b64": "?"}, "byte_size": 1}',
              '{"trace_rate": "x"}', '{"trace_level": ["OFF", "OFF"]}', '{"trace_count": -7}', '{"log_verbose_level": -1}', '{"log_format": "strange"}',
              '{"IN": ["a", 1]}', '{"IN": {"a": 1}}', '{"IN": "x", "parameters": {"IN": "y"}}', '{"id": 7, "IN": "x"}',
              '{"parameters": {"what": "x"}}', '{"parameters": {"config": "{\\"input\\": [{\\"dims\\": [-7]}]}"}}']  # fmt: skip
    for body in bodies:
        post(target, body.encode(), path)
    for _ in range(20):
        post(target, damaged(rng.choice(bodies[2:]).encode()), path)


def test_unknown_paths_and_methods_are_rejected(target: Any) -> None:
    paths = ["/", "//", "/v2/models//infer", "/v2/models/%00/infer", "/v2/models/%ff%fe/infer", "/v2/models/a%2fb/infer", "/v2/models/add_sub/versions/99999999999999999999/infer",
             "/v2/models/add_sub/versions/-1/infer", "/v2/models/add_sub/versions/x", "/v2/models/../infer", "/v2/" + "x" * 20_000, "/v2?" + "q" * 5000, "/v2/models/add_sub/infer/"]  # fmt: skip
    for path in paths:
        for body in (None, b"{}"):
            response = target.request(path, body)
            if response.status != 200:
                assert 400 <= response.status < 600
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"):
        connection = http.client.HTTPConnection(
            "127.0.0.1", target.ports["http"], timeout=TIMEOUT_S
        )
        with contextlib.closing(connection):
            connection.request(method, INFER)
            assert connection.getresponse().status >= 400, method


def test_a_truncated_document_is_rejected(target: Any) -> None:
    whole = json.dumps(REQUEST).encode()
    assert post(target, whole) == 200
    for size in range(len(whole)):
        assert post(target, whole[:size]) >= 400


def test_truncated_binary_data_is_rejected(target: Any) -> None:
    inputs = [
        {
            "name": name,
            "datatype": "INT32",
            "shape": [1, 16],
            "parameters": {"binary_data_size": 64},
        }
        for name in ("INPUT0", "INPUT1")
    ]
    head = json.dumps({"inputs": inputs}).encode()
    length = str(len(head))
    assert post(target, head + bytes(128), Inference_Header_Content_Length=length) == 200
    for size in range(0, 128, 3):
        assert post(target, head + bytes(size), Inference_Header_Content_Length=length) >= 400
        assert (
            post(
                target,
                (head + bytes(128))[: len(head) - size - 1],
                Inference_Header_Content_Length=length,
            )
            >= 400
        )


@pytest.mark.parametrize(
    "path", ["/v2", "/v2/models/add_sub", "/v2/models/add_sub/stats", "/v2/health/ready"]
)
def test_random_paths_get_clear_errors(target: Any, rng: random.Random, path: str) -> None:
    for _ in range(60):
        at = rng.randrange(1, len(path) + 1)
        noise = rng.choice(
            [
                "%",
                "%00",
                "%2e%2e%2f",
                "%ff",
                "//",
                "?a=%",
                ";",
                "\\",
                "*",
                "é".encode().decode("latin-1"),
                "%e2%98%83",
            ]
        )
        received = target.exchange(
            f"GET {path[:at]}{noise}{path[at:]} HTTP/1.1\r\nHost: fuzz\r\nConnection: close\r\n\r\n".encode(
                "latin-1"
            ),
            last=False,
        )
        status, body = int(received[9:12]), received.partition(b"\r\n\r\n")[2]
        if status != 200:
            assert_clear(status, body)


def raw(body: bytes, *headers: str, path: str = INFER) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: fuzz", *headers, "", ""]).encode() + body


def test_bytes_that_are_no_http_close_the_connection(
    target: Any, rng: random.Random, damaged: Any
) -> None:
    good = raw(b"{}", "Content-Length: 2")
    for _ in range(100):
        noise = [
            rng.randbytes(rng.randint(1, 400)),
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01" + rng.randbytes(60),
        ]
        received = target.exchange(rng.choice([damaged(good), *noise]))
        assert received == b"" or received.startswith(b"HTTP/1.1 "), received[:200]
        assert b"error id" not in received


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
def test_incomplete_and_invalid_messages_end_with_the_connection(target: Any, sent: bytes) -> None:
    received = target.exchange(sent)
    assert b" 200 " not in received.partition(b"\r\n")[0]


def test_clients_that_disconnect_immediately_leave_nothing_behind(
    target: Any, rng: random.Random
) -> None:
    whole = raw(json.dumps(REQUEST).encode(), f"Content-Length: {len(json.dumps(REQUEST))}")
    for _ in range(100):
        connection = socket.create_connection(("127.0.0.1", target.ports["http"]), TIMEOUT_S)
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )  # a reset instead of an orderly close
        connection.sendall(whole[: rng.randint(0, len(whole))])
        connection.close()


def test_chunked_bodies_are_read(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(text[at : at + 7]), text[at : at + 7])
        for at in range(0, len(text), 7)
    )
    response = target.exchange(
        raw(chunks + b"0\r\n\r\n", "Transfer-Encoding: chunked", "Connection: close"), last=False
    )
    assert response.startswith(b"HTTP/1.1 200")
    assert b'"OUTPUT0"' in response


def test_pipelined_requests_are_answered_in_order(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    good, bad = raw(text, f"Content-Length: {len(text)}"), raw(b"{", "Content-Length: 1")
    closing = raw(b"{", "Content-Length: 1", "Connection: close")
    response = target.exchange(good + bad + good + good + closing, last=False)
    assert [
        response[at + 9 : at + 12]
        for at in range(len(response))
        if response.startswith(b"HTTP/1.1 ", at)
    ] == [
        b"200",
        b"500",
        b"200",
        b"200",
        b"500",
    ]


def test_pipelined_requests_of_a_disconnected_client_leave_nothing_behind(target: Any) -> None:
    text = json.dumps(REQUEST).encode()
    for _ in range(20):
        target.exchange(raw(text, f"Content-Length: {len(text)}") * 10)
