"""The debugger in a terminal, with a request from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from .models import DECOUPLED, STREAM, double, outputs, request_file
from .terminal import PROMPT, Terminal, run


def test_a_breakpoint_stops_in_the_model(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7, 8)) as terminal:
        stopped = terminal.until(PROMPT)
        assert "model.py" in stopped
        assert "answer()" in stopped
        terminal.send("p values.tolist()")
        assert "[7, 8]" in terminal.until(PROMPT)
        terminal.send("n")
        terminal.until(PROMPT)
        terminal.send("values = values + 1")
        terminal.until(PROMPT)
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[16, 18]]
        assert "finalized in the main thread: True" in terminal.text


def test_post_mortem_debugging_shows_the_frames_of_the_exception(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 13, 14), "--pdb") as terminal:
        assert "ValueError: thirteen" in terminal.until(PROMPT)
        terminal.send("p values.tolist()")
        assert "[13, 14]" in terminal.until(PROMPT)
        terminal.send("up")
        assert "execute()" in terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 1


@pytest.mark.parametrize("where", ["import", "initialize", "auto_complete_config"])
def test_a_failed_load_can_be_debugged(tmp_path: Path, where: str) -> None:
    methods = {
        "import": "pass",
        "initialize": "def initialize(self, args):\n    size = 3\n    raise ValueError('not today')",
        "auto_complete_config": "@staticmethod\ndef auto_complete_config(config):\n    size = 3\n    raise ValueError('not today')",
    }[where]
    folder = double(tmp_path, methods=methods)
    if where == "import":
        file = folder / "1" / "model.py"
        file.write_text(f"size = 3\nraise ValueError('not today')\n{file.read_text()}")
    with Terminal(str(folder), "--request", request_file(tmp_path, 1), "--pdb") as terminal:
        assert "ValueError: not today" in terminal.until(PROMPT)
        terminal.send("p size + 1")
        assert "4" in terminal.until(PROMPT)
        terminal.send("q")
        assert terminal.ended() == 1
    done = run(str(folder), "--request", request_file(tmp_path, 1))
    # In the source line and in the message.
    assert (done.returncode, done.stderr.count("not today")) == (1, 2)


def test_ctrl_c_interrupts_a_model_that_does_not_end(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 99)) as terminal:
        terminal.until("in a loop")
        terminal.interrupt()
        assert terminal.ended() == 1
        assert "finalized" in terminal.text


def test_ctrl_c_at_the_prompt_goes_to_the_debugger(tmp_path: Path) -> None:
    folder = double(tmp_path)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7)) as terminal:
        terminal.until(PROMPT)
        terminal.interrupt()
        terminal.send("")  # the line editor may need a key if the signal came before it waited
        terminal.until("--KeyboardInterrupt--")
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[14]]


def test_a_breakpoint_in_a_coroutine_stops_in_the_main_thread(tmp_path: Path) -> None:
    folder = double(tmp_path, methods=STREAM, config=DECOUPLED)
    with Terminal(str(folder), "--request", request_file(tmp_path, 7)) as terminal:
        terminal.until(PROMPT)
        terminal.send("import threading")
        terminal.until(PROMPT)
        terminal.send("p threading.current_thread().name")
        assert "MainThread" in terminal.until(PROMPT)
        terminal.send("c")
        assert terminal.ended() == 0
        assert outputs(terminal.text) == [[7]]
