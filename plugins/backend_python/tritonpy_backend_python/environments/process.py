"""Runs the programs that build environments, with their output in the log while they run."""

from __future__ import annotations

import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 30


class CommandFailed(Exception):
    """A program ended with a failure; the text is its command, its status and the last lines that it printed."""

    def __init__(self, command: Sequence[str], status: int, tail: Sequence[str]) -> None:
        lines = "".join(f"\n    {line}" for line in tail)
        super().__init__(f"`{shlex.join(command)}` ended with status {status} and these last lines:{lines or ' none'}")


def run_logged(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], lock: int, say: Callable[[str], None]
) -> None:
    """Run `command` in `folder` and `say` each line as it comes. Raises CommandFailed, or OSError where it cannot start.

    The program inherits the lock of what it works on: if this process is killed, nobody else touches that before the
    program has ended too.
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
            _relay(process, tail, say)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CommandFailed(command, process.returncode, tail)


def _relay(process: subprocess.Popen[str], tail: deque[str], say: Callable[[str], None]) -> None:
    for line in process.stdout or ():
        text = line.strip()
        if text:
            tail.append(text)
            say(text)
