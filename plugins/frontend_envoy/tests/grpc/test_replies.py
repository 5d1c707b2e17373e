from __future__ import annotations

from tritonpy_frontend_envoy.grpc.replies import END, START, only_trailers


def test_an_answer_that_is_nothing_but_trailers_announces_none():
    event = only_trailers([(b"grpc-status", b"5")])
    assert (event["status"], event["trailers"]) == (200, False)
    assert dict(event["headers"]) == {b"content-type": b"application/grpc", b"grpc-status": b"5"}


def test_an_answer_with_messages_announces_trailers():
    assert START["trailers"]
    assert END == {"type": "http.response.body", "body": b"", "more_body": False}
