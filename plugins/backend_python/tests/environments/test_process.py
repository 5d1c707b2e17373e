from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tritonpy_backend_python.environments.file_lock import FileLock
from tritonpy_backend_python.environments.process import CommandFailed, run_logged

WAITS = """
import select, sys
print("before", flush=True)
go = open(sys.argv[1])
print("after " + go.read(), flush=True)
"""


@pytest.fixture
def lock(tmp_path: Path) -> FileLock:
    return FileLock.exclusive(tmp_path / "lock", lambda: None)


def run(code: str, lock: FileLock, log_line, *arguments: str) -> None:
    run_logged(
        [sys.executable, "-c", code, *arguments], Path("/"), os.environ, lock.descriptor, log_line
    )


def test_lines_are_logged_while_the_program_runs(tmp_path: Path, lock: FileLock):
    os.mkfifo(tmp_path / "go")
    lines = []

    def log_line(line: str) -> None:
        lines.append(line)
        if line == "before":
            (tmp_path / "go").write_text("all")

    run(WAITS, lock, log_line, str(tmp_path / "go"))
    assert lines == ["before", "after all"]


def test_both_streams_are_logged_without_empty_lines_and_margins(lock: FileLock):
    lines: list[str] = []
    run(r"import sys; sys.stderr.buffer.write(b'\n  one \r\xfftwo\n\n')", lock, lines.append)
    assert lines == ["one", "\N{REPLACEMENT CHARACTER}two"]


def test_a_failure_has_the_command_the_status_and_the_last_lines(lock: FileLock):
    with pytest.raises(CommandFailed) as raised:
        run(
            "for number in range(100): print('line', number)\nraise SystemExit(3)",
            lock,
            lambda _line: None,
        )
    text = str(raised.value)
    assert text.startswith(f"`{sys.executable} -c ")
    assert "ended with status 3 and these last lines:\n    line 70\n" in text
    assert text.endswith("    line 99")


def test_a_failed_program_without_output_has_no_lines(lock: FileLock):
    with pytest.raises(CommandFailed, match="ended with status -9 and these last lines: none"):
        run("import os; os.kill(os.getpid(), 9)", lock, lambda _line: None)


def test_a_program_is_killed_if_logging_fails(tmp_path: Path, lock: FileLock):
    def fails(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match="before"):
        run("import time\nprint('before', flush=True)\ntime.sleep(600)", lock, fails)


def test_the_program_inherits_the_lock_and_has_no_input(tmp_path: Path, lock: FileLock):
    lines: list[str] = []
    run(
        "import os, sys; print(os.fstat(int(sys.argv[1])).st_ino, repr(sys.stdin.read()))", lock, lines.append,
        str(lock.descriptor),
    )  # fmt: skip
    assert lines == [f"{(tmp_path / 'lock').stat().st_ino} ''"]
