"""The certain end of a process that a test started in a session of its own, and of whatever it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import psutil


def end_tree(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Ask it to stop, wait that long, then kill what is left."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
