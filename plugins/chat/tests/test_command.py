from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from tritonpy.cli import main


def run(monkeypatch, capsys, *arguments, given=""):
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    status = main(["chat", *arguments])
    written = capsys.readouterr()
    return status, written.out, written.err


def test_lines_of_a_pipe_are_questions(echo, monkeypatch, capsys):
    status, out, err = run(monkeypatch, capsys, "--url", echo.url, given="good day\nbye now\n")
    assert (status, out) == (0, "good day \nbye now \n")
    assert err.count("tokens") >= 2


def test_a_failed_question_of_a_pipe_is_the_exit_status(echo, monkeypatch, capsys):
    status, out, err = run(monkeypatch, capsys, f"--url={echo.url}/v1", given="fail\nnext\n")
    assert (status, out) == (1, "")
    assert "error: no such luck (status 400)" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give either a model file or --url"),
        (["missing.gguf"], "model 'missing.gguf' does not exist"),
        (["--url=ftp://x"], "'ftp://x' is no address of a server"),
        (["--url=http://127.0.0.1:1"], "cannot list the models of the server"),
    ],
)
def test_a_chat_without_a_model_does_not_begin(monkeypatch, capsys, arguments, text):
    status, _, err = run(monkeypatch, capsys, *arguments)
    assert status != 0
    assert text in err


def test_one_of_several_models_has_to_be_chosen(echo, monkeypatch, capsys):
    echo.models = ["big", "echo"]
    status, _, err = run(monkeypatch, capsys, f"--url={echo.url}")
    assert status != 0
    assert "choose a model with --model; the server has: big, echo" in err
    status, _, err = run(monkeypatch, capsys, f"--url={echo.url}", "--model=small")
    assert "the server has no model 'small'; it has: big, echo" in err
    status, out, _ = run(monkeypatch, capsys, f"--url={echo.url}", "--model=echo", given="hi")
    assert (status, out) == (0, "hi \n")


def test_a_file_that_cannot_be_served_ends_the_chat_with_the_servers_log(
    tmp_path, monkeypatch, capsys
):
    model = tmp_path / "broken.docx"
    model.write_text("x")
    status, _, err = run(monkeypatch, capsys, str(model))
    assert status != 0
    assert "did not start" in err
    assert "'.docx'" in err


def test_a_chat_in_a_terminal(echo):
    """Ctrl-D ends it, and notes are dimmed."""
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tritonpy", "chat", f"--url={echo.url}"],
        stdin=side, stdout=side, stderr=side, close_fds=True, start_new_session=True,
    )  # fmt: skip
    os.close(side)
    seen = b""
    try:
        os.write(terminal, b"good day\n")
        while b"> " not in seen.rpartition(b"2 tokens")[2] or b"2 tokens" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x04")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert b"echo is ready." in seen
    assert b"good day \r\n" in seen
    assert b"\x1b[2m" in seen
