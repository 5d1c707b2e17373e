"""Shared memory that every server of a comparison knows under the same name."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory

from bench.payloads import REGION
from bench.processes import Running


@contextlib.contextmanager
def shared(megabytes: int) -> Iterator[SharedMemory]:
    """Make an object of shared memory of that size, full of zeros, and remove it in the end."""
    memory = SharedMemory(create=True, size=megabytes * 2**20)
    try:
        yield memory
    finally:
        memory.close()
        memory.unlink()


def register(server: Running, memory: SharedMemory) -> None:
    """Tell `server` of `memory` as the region `REGION`."""
    url = f"http://127.0.0.1:{server.http}/v2/systemsharedmemory/region/{REGION}/register"
    said = json.dumps({"key": f"/{memory.name}", "offset": 0, "byte_size": memory.size}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, said, method="POST"), timeout=10):
        """It would have raised."""
