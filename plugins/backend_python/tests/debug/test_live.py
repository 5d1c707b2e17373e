"""A model in the debugger behind live ports."""

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
    """Send a request over HTTP and return the body of the answer."""
    body = {"inputs": [{"name": "IN", "shape": [len(values)], "datatype": "INT64", "data": list(values)}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/{model}/infer",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - it is the URL above
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


class InBackground:
    """A request that is on its way."""

    def __init__(self, port: int, *values: int) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._answer = self._pool.submit(post, port, *values)

    def result(self) -> Any:
        """Wait for the answer."""
        try:
            return self._answer.result(60)
        finally:
            self._pool.shutdown()


def test_quitting_the_debugger_ends_the_command(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        port = live_port(terminal)
        answer = InBackground(port, 7)
        terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 0
        assert "finalized" in terminal.text
        assert "BdbQuit" in answer.result()["error"]


def test_clients_are_served_one_after_the_other_and_an_exception_does_not_end_it(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0", "--grpc-port", "0") as terminal:
        port = live_port(terminal)
        assert post(port, 1, 2)["outputs"][0]["data"] == [2, 4]
        assert "thirteen" in post(port, 13)["error"]
        terminal.until("ValueError: thirteen cannot be doubled")
        stopped = InBackground(port, 7)
        terminal.until(PROMPT)
        waiting = InBackground(port, 3)
        terminal.send("c")
        assert stopped.result()["outputs"][0]["data"] == [14]
        assert waiting.result()["outputs"][0]["data"] == [6]
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_interrupts_a_request_and_ends(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = InBackground(live_port(terminal), 99)
        terminal.until("in a loop")
        terminal.interrupt()
        assert terminal.ended() == 0
        assert "KeyboardInterrupt" in answer.result()["error"]


def test_a_termination_is_as_good_as_ctrl_c(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        live_port(terminal)
        terminal.kill(signal.SIGTERM)
        assert terminal.ended() == 0
        assert "finalized" in terminal.text


def test_ctrl_c_after_the_debugger_went_on_ends_it_too(tmp_path: Path) -> None:
    """The debugger keeps Ctrl-C for itself when it is left to continue: that must not outlive the request."""
    folder = double(tmp_path)
    with Terminal(str(folder), "--http-port", "0") as terminal:
        answer = InBackground(live_port(terminal), 7)
        terminal.until(PROMPT)
        terminal.send("c")
        assert answer.result()["outputs"][0]["data"] == [14]
        terminal.interrupt()
        assert terminal.ended() == 0


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(str(folder), "--http-port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "error: " in done.stderr
