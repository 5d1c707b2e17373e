from __future__ import annotations

import json

from tritonpy.listening.http1.connection import _answer_without_chunks as answer_without_chunks

from .wire import connect, read_to_end, request


def test_a_stream_of_events_has_no_chunks_for_an_old_client(server, engine):
    body = json.dumps({"X": [1.5, 2.5]}).encode()
    with connect(server) as stream:
        stream.sendall(request(body, path="/v2/models/echo/generate_stream", version="1.0"))
        head, _, events = read_to_end(stream).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert b"connection: close" in head
    assert events.startswith(b"data: {")
    assert events.endswith(b"}\n\n")


def test_any_number_of_bytes_is_the_right_one():
    class Cycle:
        chunked_encoding, expected_content_length = None, 0

    cycle = Cycle()
    answer_without_chunks(cycle)
    assert cycle.chunked_encoding is False
    assert (10 > cycle.expected_content_length) is False  # noqa: SIM300
    cycle.expected_content_length -= 10
    assert (cycle.expected_content_length != 0) is False
