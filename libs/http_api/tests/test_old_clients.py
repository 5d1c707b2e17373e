from __future__ import annotations

import json

from tritonpy_http1.connection import _disable_chunks as disable_chunks

from .raw_http import connect, read_to_end, request


def test_http10_clients_get_events_without_chunks(server, engine):
    body = json.dumps({"X": [1.5, 2.5]}).encode()
    with connect(server) as stream:
        stream.sendall(request(body, path="/v2/models/echo/generate_stream", version="1.0"))
        head, _, events = read_to_end(stream).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert b"connection: close" in head
    assert events.startswith(b"data: {")
    assert events.endswith(b"}\n\n")


def test_responses_without_chunks_may_have_any_size():
    class Cycle:
        chunked_encoding, expected_content_length = None, 0

    cycle = Cycle()
    disable_chunks(cycle)
    assert cycle.chunked_encoding is False
    assert (10 > cycle.expected_content_length) is False  # noqa: SIM300
    cycle.expected_content_length -= 10
    assert (cycle.expected_content_length != 0) is False
