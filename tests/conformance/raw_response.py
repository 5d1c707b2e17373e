"""Sends arbitrary bytes and returns the responses as plain data."""

from __future__ import annotations

import contextlib
import http.client
import socket
from typing import Any, BinaryIO

from tests.conformance.exchange import Raw
from tests.conformance.http_response import HEADERS, NO_ANSWER, read_body


def send_raw(port: int, raw: Raw) -> list[dict[str, Any]]:
    """Return every response: one per request of `raw.methods`, and "100 Continue" responses."""
    found: list[dict[str, Any]] = []
    with contextlib.closing(
        socket.create_connection(("127.0.0.1", port), raw.timeout_s)
    ) as connection:
        connection.sendall(raw.sent)
        with connection.makefile("rb") as file:
            try:
                for method in raw.methods:
                    found.append(response := _read_response(file, method))
                    if response["status"] == 100:
                        found.append(_read_response(file, method))
            except TimeoutError:
                found.append(NO_ANSWER)
            except (ConnectionError, EOFError):
                found.append({"connection": "closed"})
    return found


def _read_response(file: BinaryIO, method: str) -> dict[str, Any]:
    line = file.readline()
    if not line:
        raise EOFError
    status = int(line.split()[1])
    headers = {name.lower(): value for name, value in http.client.parse_headers(file).items()}
    if status == 100:
        return {"status": status}
    body = b"" if method == "HEAD" else file.read(int(headers.get("content-length", 0)))
    visible_headers = {name: headers[name] for name in HEADERS if name in headers}
    return {"status": status, "headers": visible_headers, **read_body(visible_headers, body)}
