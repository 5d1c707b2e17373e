"""Script that loads and unloads the model "m" repeatedly and prints its memory usage.

Arguments: the repository, the number of cycles, and "cpu" or the index of a GPU to measure.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from tritonpy import running_server
from tritonpy_device_cuda.gpus import gpu_memory

WAIT_S = 30.0


def used(where: str) -> int:
    """Return the memory of this process, or the used memory of a GPU, in bytes."""
    if where != "cpu":
        return gpu_memory(int(where))[0]
    return os.sysconf("SC_PAGE_SIZE") * int(
        Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    )


def wait_until_unloaded() -> None:
    """Wait until the unloading thread has ended and freed its memory.

    Before Python 3.13 `join` returns before the system thread ends and its allocator frees memory.
    """
    deadline = time.monotonic() + WAIT_S
    for thread in threading.enumerate():
        if thread.name.startswith("unload "):
            thread.join(deadline - time.monotonic())
            assert not thread.is_alive(), "the model is still being unloaded"
            while (
                Path(f"/proc/self/task/{thread.native_id}").exists() and time.monotonic() < deadline
            ):
                time.sleep(0.001)


def main(repository: str, cycles: int, where: str) -> None:
    """Print the memory used with and without the model, once per cycle.

    At first the model is loaded with the server.
    """
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
