"""Processes that build environments, with their output in the log."""

from __future__ import annotations

import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 30


class CommandFailed(Exception):
    """A program failed. The text contains its command, its status and its last lines of output."""

    def __init__(self, command: Sequence[str], status: int, tail: Sequence[str]) -> None:
        lines = "".join(f"\n    {line}" for line in tail)
        super().__init__(
            f"`{shlex.join(command)}` ended with status {status} and these last "
            f"lines:{lines or ' none'}"
        )


def run_logged(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    lock: int,
    log_line: Callable[[str], None],
) -> None:
    """Run `command` in `folder` and call `log_line` with each line of output.

    The program inherits the lock of its folder. So if this process is killed, the folder stays
    locked until the program ends. Raises `CommandFailed`, or `OSError` if the program cannot start.
    """
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        pass_fds=(lock,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            _relay(process, tail, log_line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CommandFailed(command, process.returncode, tail)


def _relay(
    process: subprocess.Popen[str], tail: deque[str], log_line: Callable[[str], None]
) -> None:
    for line in process.stdout or ():
        text = line.strip()
        if text:
            tail.append(text)
            log_line(text)
