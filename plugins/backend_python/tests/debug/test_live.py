"""A debugged model that serves clients."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .models import double
from .terminal import PROMPT, Terminal, run


def live_port(terminal: Terminal) -> int:
    """Wait for the server and return its HTTP port."""
    terminal.until("http on 127.0.0.1:")
    return int(terminal.until(";").rstrip(";").partition(",")[0])


def post(port: int, *values: int, model: str = "double") -> Any:
    """Send a request over HTTP and return the body of the response."""
    body = {
        "inputs": [
            {"name": "IN", "shape": [len(values)], "datatype": "INT64", "data": list(values)}
        ]
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/{model}/infer",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - the URL above
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


class PendingRequest:
    """A request in flight."""

    def __init__(self, port: int, *values: int) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._answer = self._pool.submit(post, port, *values)

    def result(self) -> Any:
        """Wait for the response."""
        try:
            return self._answer.result(60)
        finally:
            self._pool.shutdown()


def test_quitting_the_debugger_ends_the_command(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        port = live_port(terminal)
        answer = PendingRequest(port, 7)
        terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 0
        assert "finalized" in terminal.text
        assert "BdbQuit" in answer.result()["error"]


def test_clients_are_served_sequentially_and_exceptions_do_not_end_the_command(
    tmp_path: Path,
) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0", "--grpc-port", "0") as terminal:
        port = live_port(terminal)
        assert post(port, 1, 2)["outputs"][0]["data"] == [2, 4]
        assert "thirteen" in post(port, 13)["error"]
        terminal.until("ValueError: thirteen cannot be doubled")
        stopped = PendingRequest(port, 7)
        terminal.until(PROMPT)
        waiting = PendingRequest(port, 3)
        terminal.send("c")
        assert stopped.result()["outputs"][0]["data"] == [14]
        assert waiting.result()["outputs"][0]["data"] == [6]
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_interrupts_a_request_and_ends(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = PendingRequest(live_port(terminal), 99)
        terminal.until("in a loop")
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "KeyboardInterrupt" in answer.result()["error"]


def test_sigterm_ends_the_command(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        live_port(terminal)
        terminal.kill(signal.SIGTERM)
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_works_after_the_debugger_continued(tmp_path: Path) -> None:
    """A debugger that continues keeps its handler of Ctrl-C, but not beyond the request."""
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = PendingRequest(live_port(terminal), 7)
        terminal.until(PROMPT)
        terminal.send("c")
        assert answer.result()["outputs"][0]["data"] == [14]
        terminal.interrupt()
        assert terminal.ended() == 0


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(str(folder), "--http-port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "error: " in done.stderr
