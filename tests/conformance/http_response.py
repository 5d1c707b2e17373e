"""Sends the bytes of an HTTP request and returns the response as plain data."""

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


def send(port: int, request: Http) -> dict[str, Any]:
    """Return status, compared headers and body: as JSON with decoded tensors, otherwise as text."""
    try:
        return _send(port, request)
    except TimeoutError:
        return NO_ANSWER
    except (ConnectionError, http.client.HTTPException):
        return {"connection": "closed"}


def _send(port: int, request: Http) -> dict[str, Any]:
    connection = socket.create_connection(("127.0.0.1", port), request.timeout_s)
    with contextlib.closing(connection):
        connection.sendall(request.wire())
        response = http.client.HTTPResponse(connection, method=request.method or None)
        response.begin()
        body = response.read()
        headers = {
            name: value for name in HEADERS if (value := response.getheader(name)) is not None
        }
    found: dict[str, Any] = {
        "status": response.status,
        "headers": headers,
        **read_body(headers, body),
    }
    headers.pop(
        "inference-header-content-length", None
    )  # the length of JSON that may be formatted differently
    return found


def read_body(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return the parsed body, which may be compressed."""
    if headers.get("content-encoding") in {"gzip", "deflate"}:
        body = zlib.decompress(body, 47)  # gzip or deflate
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
