"""Shared memory that all servers of a comparison register under the same name."""

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
    """Make a shared-memory object of zeros, and remove it on exit."""
    memory = SharedMemory(create=True, size=megabytes * 2**20)
    try:
        yield memory
    finally:
        memory.close()
        memory.unlink()


def register(server: Running, memory: SharedMemory) -> None:
    """Register `memory` with `server` as the region `REGION`."""
    url = f"http://127.0.0.1:{server.http}/v2/systemsharedmemory/region/{REGION}/register"
    body = json.dumps({"key": f"/{memory.name}", "offset": 0, "byte_size": memory.size}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=10):
        """urlopen raises on errors."""
