"""HTTP and gRPC transport: compression, lengths and chunks, old clients, methods, invalid requests."""

from __future__ import annotations

import dataclasses
import gzip
import zlib

from tests.conformance.exchange import Exchange, Grpc, Http, Raw, get, post, topic
from tests.conformance.inference import Inference, given, streamed
from tritonpy_protos import grpc_service_pb2 as pb

PLAIN = Inference(
    "add_sub", {"INPUT0": given("FP32", 1, 2, 3, 4), "INPUT1": given("FP32", 5, 6, 7, 8)}
)
JSON, BINARY = PLAIN.json(), PLAIN.binary()
INFER, INDEX = PLAIN.path, "/v2/repository/index"
BODY = JSON.body
PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
HOST = "Host: localhost\r\n"


def packed(request: Http, encoding: str, body: bytes | None = None, **changes: object) -> Http:
    sent = PACK[encoding](request.body) if body is None else body
    headers = (*request.headers, ("Content-Encoding", encoding))
    return dataclasses.replace(request, body=sent, method="POST", headers=headers, **changes)


def accepting(request: Http, encoding: str) -> Http:
    return dataclasses.replace(request, headers=(*request.headers, ("Accept-Encoding", encoding)))


def raw(
    body: bytes = BODY,
    headers: str = "",
    path: str = INFER,
    version: str = "1.1",
    method: str = "POST",
    length: bool = True,
    close: bool = True,
) -> bytes:
    lines = f"{method} {path} HTTP/{version}\r\n{HOST}"
    if length:
        lines += f"Content-Length: {len(body)}\r\n"
    return f"{lines}{headers}{'Connection: close' if close else 'X: y'}\r\n\r\n".encode() + body


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def one(name: str, sent: bytes, *methods: str, **options: float) -> Exchange:
    return Exchange(name, (Raw(sent, methods or ("POST",), **options),))


CHUNKED = "Transfer-Encoding: chunked\r\n"
LENGTH = f"Content-Length: {len(BODY)}\r\n"


def compression_of_requests(encoding: str) -> list[Exchange]:
    pack = PACK[encoding]
    name = f"{encoding} request"
    two = packed(JSON, encoding, pack(BODY[:20]) + pack(BODY[20:]))
    return [
        Exchange(f"{name}: JSON", (packed(JSON, encoding),), {"add_sub": 1}),
        Exchange(f"{name}: binary", (packed(BINARY, encoding),), {"add_sub": 1}),
        Exchange(f"{name}: and the same for the answer", (accepting(packed(BINARY, encoding), encoding),), {"add_sub": 1}),
        Exchange(f"{name}: nothing", (packed(JSON, encoding, b""),)),
        Exchange(f"{name}: garbage", (packed(JSON, encoding, b"this is no compressed data"),)),
        Exchange(f"{name}: cut short", (packed(JSON, encoding, pack(BODY)[:-20]),)),
        Exchange(f"{name}: with something behind it", (packed(JSON, encoding, pack(BODY) + b"more"),)),
        Exchange(f"{name}: two of them", (two,)),
        Exchange(f"{name}: twice", (packed(JSON, encoding, pack(pack(BODY))),)),
        Exchange(f"{name}: no JSON inside", (packed(JSON, encoding, pack(b"{")),)),
        Exchange(f"{name}: unknown model", (packed(JSON, encoding, path="/v2/models/nobody/infer"),)),
        Exchange(f"{name}: in chunks", (Raw(raw(chunked(pack(BODY)[:30], pack(BODY)[30:]), f"Content-Encoding: {encoding}\r\n{CHUNKED}", length=False)),)),
        Exchange(f"{name}: the index", (packed(post(INDEX, {"ready": True}), encoding),)),
        Exchange(f"{name}: generate", (packed(post("/v2/models/add_sub/generate", {}), encoding),)),
    ]  # fmt: skip


def compression_of_answers() -> list[Exchange]:
    accepted = (
        "gzip",
        "deflate",
        "identity",
        "*",
        "br",
        "gzip, deflate",
        "deflate;q=0.5, gzip;q=0.2",
        "gzip;q=0",
        "GZIP",
        "",
    )
    return [
        *(Exchange(f"answer for '{text}': JSON", (accepting(JSON, text),)) for text in accepted),
        *(
            Exchange(f"answer for '{text}': binary", (accepting(BINARY, text),))
            for text in accepted[:3]
        ),
        Exchange("compressed answer: an error", (accepting(post(INFER, {}), "gzip"),)),
        Exchange(
            "compressed answer: unknown model",
            (accepting(post("/v2/models/nobody/infer", {}), "gzip"),),
        ),
        *(
            Exchange(f"compressed answer: {path}", (accepting(get(path), "gzip"),))
            for path in ("/v2/models/add_sub", "/v2/models/add_sub/config", "/v2/health/live")
        ),
        Exchange("compressed answer: index", (accepting(post(INDEX, {"ready": True}), "gzip"),)),
    ]


def unknown_compression() -> list[Exchange]:
    names = ("br", "GZIP", "x-gzip", "gzip, gzip", "gzip,deflate", "identity", "compress")
    return [
        *(Exchange(f"content encoding '{name}'", (dataclasses.replace(JSON, headers=(("Content-Encoding", name),)),)) for name in names),
        Exchange(
            "unknown content encoding of an unknown model",
            (post("/v2/models/nobody/infer", BODY, headers=(("Content-Encoding", "br"),)),),
        ),
    ]  # fmt: skip


def grpc_compression(name: str) -> list[Exchange]:
    def call(inference: Inference) -> Grpc:
        return dataclasses.replace(inference.grpc(), compression=name)

    stream = dataclasses.replace(
        streamed(PLAIN.named(id="1"), PLAIN.named(id="2", model="nobody")), compression=name
    )
    return [
        Exchange(f"gRPC {name}: infer", (call(PLAIN),), {"add_sub": 1}),
        Exchange(f"gRPC {name}: unknown model", (call(PLAIN.named(model="nobody")),)),
        Exchange(f"gRPC {name}: stream", (stream,)),
        *(
            Exchange(f"gRPC {name}: {method}", (Grpc(method, message, compression=name),))
            for method, message in (
                ("ServerLive", pb.ServerLiveRequest()),
                ("ModelReady", pb.ModelReadyRequest(name="add_sub")),
                ("ModelMetadata", pb.ModelMetadataRequest(name="add_sub")),
                ("RepositoryIndex", pb.RepositoryIndexRequest(ready=True)),
            )
        ),
    ]


def methods() -> list[Exchange]:
    paths = (
        "/v2",
        "/v2/health/live",
        "/v2/models/add_sub",
        INFER,
        INDEX,
        "/v2/models/add_sub/generate",
        "/nowhere",
    )
    names = ("OPTIONS", "HEAD", "PUT", "DELETE", "PATCH", "TRACE")
    return [
        one(f"{name} {path}", raw(b"", path=path, method=name, length=False), name)
        for name in names
        for path in paths
    ]


LENGTHS = [
    one("no length: infer", raw(b"", length=False)),
    one("no length: index", raw(b"", path=INDEX, length=False)),
    one("a body of a GET", raw(b"{}", path="/v2/models/add_sub", method="GET"), "GET"),
    one("one chunk", raw(chunked(BODY), CHUNKED, length=False)),
    one("many chunks", raw(chunked(*(BODY[at : at + 1] for at in range(len(BODY)))), CHUNKED, length=False)),
    one("chunks: index", raw(chunked(b'{"rea', b'dy":true}'), CHUNKED, path=INDEX, length=False)),
    one("chunks: none", raw(chunked(), CHUNKED, length=False)),
    one("chunks: the limit", raw(b"1\r\n \r\n" * 65_536 + b"0\r\n\r\n", CHUNKED, length=False)),
    one("chunks: one more than the limit", raw(b"1\r\n \r\n" * 65_537 + b"0\r\n\r\n", CHUNKED, length=False)),
    one("requests of one connection", raw(close=False) + raw(b"", path="/v2/models/add_sub", method="GET", length=False), "POST", "GET"),
    one("three requests at once", raw(close=False) * 2 + raw(), "POST", "POST", "POST"),
]  # fmt: skip
EXPECT = "Expect: 100-continue\r\n"
OTHERS = [
    one("expect: infer", raw(headers=EXPECT)),
    one("expect: index", raw(b'{"ready":true}', EXPECT, path=INDEX)),
    one("expect: something else", raw(headers="Expect: tea\r\n")),
    one("HTTP/1.0", raw(version="1.0")),
    one("HTTP/1.0: metadata", raw(b"", path="/v2/models/add_sub", method="GET", version="1.0", length=False), "GET"),
    one("HTTP/1.0: live", raw(b"", path="/v2/health/live", method="GET", version="1.0", length=False), "GET"),
    one("HTTP/1.0 that goes on", raw(headers="Connection: keep-alive\r\n", version="1.0", close=False)),
    one("absolute target: infer", raw(path=f"http://localhost{INFER}")),
    one("absolute target: metadata", raw(b"", path="http://localhost/v2/models/add_sub", method="GET", length=False), "GET"),
    one("no host", raw().replace(HOST.encode(), b"")),
    one("another protocol offered", raw(headers="Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n").replace(b"Connection: close", b"Connection: Upgrade, HTTP2-Settings")),
    one("header names in any case", raw(length=False, headers=f"CONTENT-length: {len(BODY)}\r\n")),
    one("an unknown method", raw(b"", path="/v2", method="BREW", length=False), "BREW"),
]  # fmt: skip
REFUSED = [
    one("no HTTP", b"this is no request\r\n\r\n"),
    one("no such method in small letters", raw(b"", path="/v2", method="get", length=False)),
    one("length: a list", raw(headers=f"Content-Length: {len(BODY)}, {len(BODY)}\r\n", length=False)),
    one("length: negative", raw(headers="Content-Length: -1\r\n", length=False)),
    one("length: with a sign", raw(headers="Content-Length: +5\r\n", length=False)),
    one("length: hexadecimal", raw(headers="Content-Length: 0x5\r\n", length=False)),
    one("length: enormous", raw(headers=f"Content-Length: {'9' * 30}\r\n", length=False)),
    one("length: two that differ", raw(headers="Content-Length: 3\r\n")),
    one("length: the same twice", raw(headers=LENGTH)),
    one("length and chunks", raw(chunked(BODY), CHUNKED)),
    one("chunks of no size", raw(b"zz\r\nabc\r\n0\r\n\r\n", CHUNKED, length=False)),
    one("coding: gzip, chunked", raw(chunked(gzip.compress(BODY)), "Transfer-Encoding: gzip, chunked\r\n", length=False)),
    one("a header in two lines", raw(headers="Name: one\r\n two\r\n")),
    one("bare line feeds", raw().replace(b"\r\n", b"\n")),
]  # fmt: skip

TOPIC = topic(
    "transport",
    "add_sub",
    [
        compression_of_requests("gzip"),
        compression_of_requests("deflate"),
        compression_of_answers(),
        unknown_compression(),
        grpc_compression("gzip"),
        grpc_compression("deflate"),
        methods(),
        LENGTHS,
        OTHERS,
        REFUSED,
    ],
)
