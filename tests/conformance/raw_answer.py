"""Sends bytes that need not be a good request, and reads the answers as plain data."""

from __future__ import annotations

import contextlib
import http.client
import socket
from typing import Any, BinaryIO

from tests.conformance.exchange import Raw
from tests.conformance.http_answer import HEADERS, NO_ANSWER, read_body


def ask_raw(port: int, raw: Raw) -> list[dict[str, Any]]:
    """Return every answer: one per request of `raw.methods`, and those that only say to go on."""
    found: list[dict[str, Any]] = []
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), raw.patience)) as connection:
        connection.sendall(raw.sent)
        with connection.makefile("rb") as file:
            try:
                for method in raw.methods:
                    found.append(answer := _answer(file, method))
                    if answer["status"] == 100:
                        found.append(_answer(file, method))
            except TimeoutError:
                found.append(NO_ANSWER)
            except (ConnectionError, EOFError):
                found.append({"connection": "closed"})
    return found


def _answer(file: BinaryIO, method: str) -> dict[str, Any]:
    line = file.readline()
    if not line:
        raise EOFError
    status = int(line.split()[1])
    headers = {name.lower(): value for name, value in http.client.parse_headers(file).items()}
    if status == 100:
        return {"status": status}
    body = b"" if method == "HEAD" else file.read(int(headers.get("content-length", 0)))
    told = {name: headers[name] for name in HEADERS if name in headers}
    return {"status": status, "headers": told, **read_body(told, body)}
