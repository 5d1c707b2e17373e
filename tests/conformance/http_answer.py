"""Sends the bytes of an HTTP request and reads the answer as plain data."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import zlib
from typing import Any

from tests.conformance.exchange import Http
from tests.conformance.tensor_data import values

HEADERS = (
    "content-type", "inference-header-content-length", "content-encoding", "transfer-encoding", "endpoint-load-metrics",
)  # fmt: skip
NO_ANSWER = {"no answer": True}


def ask(port: int, request: Http) -> dict[str, Any]:
    """Return status, the headers that matter, and the body: as JSON with tensors read, else as text."""
    try:
        return _ask(port, request)
    except TimeoutError:
        return NO_ANSWER
    except (ConnectionError, http.client.HTTPException):
        return {"connection": "closed"}


def _ask(port: int, request: Http) -> dict[str, Any]:
    connection = socket.create_connection(("127.0.0.1", port), request.patience)
    with contextlib.closing(connection):
        connection.sendall(request.wire())
        answer = http.client.HTTPResponse(connection, method=request.method or None)
        answer.begin()
        body = answer.read()
        headers = {name: value for name in HEADERS if (value := answer.getheader(name)) is not None}
    found: dict[str, Any] = {"status": answer.status, "headers": headers, **read_body(headers, body)}
    headers.pop("inference-header-content-length", None)  # the length of a text that may be written in several ways
    return found


def read_body(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return what a body says; it may be compressed."""
    if headers.get("content-encoding") in {"gzip", "deflate"}:
        body = zlib.decompress(body, 47)  # either of the two
    length = int(headers.get("inference-header-content-length", len(body)))
    if headers.get("content-type", "").startswith("text/event-stream"):
        return {"events": [_parsed(part) for part in body.split(b"\n\n") if part]}
    try:
        content = json.loads(body[:length])
    except ValueError:
        return {"text": body.decode("utf-8", "backslashreplace")} if body else {}
    if length < len(body):
        _read_tensors(content, body[length:])
    return {"json": content}


def _parsed(event: bytes) -> Any:
    try:
        return json.loads(event.removeprefix(b"data: "))
    except ValueError:
        return event.decode("utf-8", "backslashreplace")


def _read_tensors(content: dict[str, Any], data: bytes) -> None:
    at = 0
    for output in content["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        if size is not None:
            output["binary"] = values(output["datatype"], data[at : at + size])
            at += size
    if at != len(data):
        content["surplus bytes"] = len(data) - at
