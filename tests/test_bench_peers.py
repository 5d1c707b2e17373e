"""The comparison with other servers: requests, the check of a server, and their programs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from bench.peers import __main__ as peers


@contextmanager
def answering(reply: Any) -> Iterator[tuple[int, list[Any]]]:
    """Serve `reply` as JSON to every POST; yield the port and the requests."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("name", peers.PEERS)
def test_every_peer_has_a_program_and_a_request_with_varying_data(name: str) -> None:
    peer = peers.PEERS[name]
    assert (peers.FOLDER / f"serve_{name}.py").exists()
    one, two = (json.loads(peer.body().replace(peers.VARIED, str(each))) for each in (1, 2))
    assert one != two


def test_a_server_is_ready_when_its_sums_are_right() -> None:
    output = {"name": "OUTPUT0", "data": peers.SUMS}
    with answering({"outputs": [output]}) as (port, requests):
        peers.wait(peers.OURS, port)
    assert [each["data"][0] for each in requests[0]["inputs"]] == [peers.FIRST] * 2


def test_a_server_with_wrong_sums_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "START_S", 0.3)
    wrong = {"outputs": [{"name": "OUTPUT0", "data": [0] * 16}]}
    with answering(wrong) as (port, _), pytest.raises(TimeoutError, match="the last was"):
        peers.wait(peers.OURS, port)
