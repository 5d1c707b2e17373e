"""The bare gRPC server on Envoy, as `bench.echo` starts it: an ASGI application that parses and serialises the same messages."""

from __future__ import annotations

from struct import Struct

from bench.messages import infer

PREFIX = Struct(">BI")
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/grpc")],
    "trailers": True,
}
OK = {"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]}


async def app(scope, receive, send) -> None:  # noqa: ANN001 - ASGI
    """Answer ModelInfer with its inputs; every other method with an empty message."""
    if scope["type"] != "http":
        return
    event = await receive()
    body = event["body"]
    while event["more_body"]:
        event = await receive()
        body += event["body"]
    answer = infer(body[PREFIX.size :]) if scope["path"].endswith("/ModelInfer") else b""
    await send(START)
    await send({"type": "http.response.body", "body": PREFIX.pack(0, len(answer)) + answer})
    await send(OK)
