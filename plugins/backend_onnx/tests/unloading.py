"""Loads and unloads the model "m" again and again, in a process of its own, and prints how much memory that has each time.

Arguments: the repository, how often, and "cpu" or the number of a GPU, whose memory is then looked at.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from tritonpy import gpu_memory, running_server

PATIENCE_S = 30.0


def used(where: str) -> int:
    """Return how much memory this process has, or how much of a GPU is in use, in bytes."""
    if where != "cpu":
        return gpu_memory(int(where))[0]
    return os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


def wait_until_unloaded() -> None:
    """Return when the thread that unloads is gone, and with it everything that it frees.

    Before Python 3.13 `join` returns a little earlier than the system's thread ends, which frees what its allocator kept for it.
    """
    deadline = time.monotonic() + PATIENCE_S
    for thread in threading.enumerate():
        if thread.name.startswith("unload "):
            thread.join(deadline - time.monotonic())
            assert not thread.is_alive(), "the model is still being unloaded"
            while Path(f"/proc/self/task/{thread.native_id}").exists() and time.monotonic() < deadline:
                time.sleep(0.001)


def main(repository: str, cycles: int, where: str) -> None:
    """Print what is used with the model and without it, once for each cycle; the first time it is loaded with the server."""
    config = {
        "repositories": [{"url": repository}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "control": {"mode": "explicit", "load": ["m"]},
    }
    with running_server(config) as server:
        for cycle in range(cycles):
            if cycle:
                server.engine.load_model("m")
            loaded = used(where)
            server.engine.unload_model("m")
            wait_until_unloaded()
            print(loaded, used(where))


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
