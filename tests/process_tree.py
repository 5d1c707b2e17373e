"""Termination of a process that a test started in its own session, with all descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import psutil


def end_tree(process: subprocess.Popen[bytes], wait_s: float) -> None:
    """Terminate the process, wait up to `wait_s` seconds, then kill the rest of its session."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
