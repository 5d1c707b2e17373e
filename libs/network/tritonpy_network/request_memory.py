"""The memory of requests and unsent responses: one budget for all frontends of a process.

Frontends reserve memory before they store data for a client: bodies and messages as they arrive,
decompressed data, and responses that a client does not read. A reservation that exceeds the budget
is refused. So the process stays within its memory for any number of clients.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tritonpy_metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy_types.errors import ResourceExhausted

SMALL = 64 * 1024
"""Bytes that one client may hold even if only the reserve for small requests is left."""
_SHARE = 4  # divides the memory limit, since one request needs memory for up to four copies
_RESERVE = 8  # one part in this many is for clients that hold little


class RequestMemoryFull(ResourceExhausted):
    """The budget has no memory for a request or a response; HTTP status 503."""


class RequestMemory:
    """Counts reserved bytes against `limit`; 0 for no limit.

    Clients share it by dynamic thresholds: a client may hold as much as is still free. So a single
    client gets half of it, and each of N greedy clients 1 / (N + 1). An eighth is reserved for
    clients that hold up to `SMALL` bytes. Any thread may call any method.
    """

    UNCOUNTED: ClassVar[int] = 16 * 1024
    """Frontends need not reserve a request of up to this size that arrives complete."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.refused = 0
        self._shared = limit - limit // _RESERVE
        self._used = 0
        self._lock = threading.Lock()
        self._released: deque[tuple[ClientMemory, int]] = deque()

    @property
    def used(self) -> int:
        """The number of reserved bytes."""
        with self._lock:
            self._settle()
            return self._used

    def client(self) -> ClientMemory:
        """Return a new account for a client, usually a connection."""
        return ClientMemory(self)

    def refusal(self, nbytes: int) -> RequestMemoryFull:
        """Return the error for a client that needs `nbytes` more bytes than it may have."""
        return RequestMemoryFull(
            f"The server has no memory for this request: it needs {nbytes} more bytes, and "
            f"{self.used} of {self.limit} bytes for requests and "
            "unsent responses are in use. Try again later, send smaller requests, "
            "or use --request-memory (request_memory in server.yaml) to "
            "increase the limit."
        )

    def values(self) -> list[int]:
        """Return the reserved bytes, the limit and the number of refusals."""
        return [self.used, self.limit, self.refused]

    def metrics(self) -> list[FamilySnapshot]:
        """Return the same values as metrics."""
        return memory_metrics({"": self.values()})

    def _take(self, client: ClientMemory, nbytes: int) -> bool:
        with self._lock:
            if self._released:
                self._settle()
            held = client.held + nbytes
            if self.limit:
                used = self._used + nbytes
                if used > self.limit if held <= SMALL else held + used > self._shared:
                    self.refused += 1
                    return False
            client.held = held
            self._used += nbytes
            return True

    def _release(self, client: ClientMemory, nbytes: int) -> None:
        # Without the lock, since the garbage collector may drop a reservation while this thread
        # holds it.
        self._released.append((client, nbytes))

    def _settle(self) -> None:
        released = self._released
        while released:
            client, nbytes = released.popleft()
            client.held -= nbytes
            self._used -= nbytes


_FAMILIES = (
    (
        "nv_request_memory_bytes",
        "Bytes of requests and unsent responses that frontends hold",
        MetricKind.GAUGE,
    ),
    (
        "nv_request_memory_limit_bytes",
        "Most bytes of requests and unsent responses, 0 for any number",
        MetricKind.GAUGE,
    ),
    (
        "nv_request_memory_refusals",
        "Number of times that a request or a response found no memory",
        MetricKind.COUNTER,
    ),
)  # name, description and kind of each metric


def memory_metrics(values: Mapping[str, Sequence[int]]) -> list[FamilySnapshot]:
    """Return the metrics for the `values` by process name ("" for a single process)."""
    return [
        FamilySnapshot(
            name,
            text,
            kind,
            [
                MetricSnapshot({"process": process} if process else {}, float(each[at]))
                for process, each in values.items()
            ],
        )
        for at, (name, text, kind) in enumerate(_FAMILIES if values else ())
    ]


class ClientMemory:
    """The reserved memory of one client."""

    __slots__ = ("held", "memory")

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.held = 0

    def reservation(self) -> Reservation:
        """Return an empty reservation."""
        return Reservation(self)


class Reservation:
    """Bytes reserved for one purpose, until released or the object is garbage-collected."""

    __slots__ = ("_client", "nbytes")

    def __init__(self, client: ClientMemory) -> None:
        self._client = client
        self.nbytes = 0

    def grow(self, nbytes: int) -> bool:
        """Reserve `nbytes` in total if that is more than now.

        Return False, without a change, if the budget is exceeded.
        """
        more = nbytes - self.nbytes
        if more > 0:
            client = self._client
            if not client.memory._take(client, more):
                return False
            self.nbytes = nbytes
        return True

    def require(self, nbytes: int) -> None:
        """Reserve `nbytes` in total; raises RequestMemoryFull if the budget is exceeded."""
        if not self.grow(nbytes):
            raise self._client.memory.refusal(nbytes - self.nbytes)

    def shrink(self, nbytes: int = 0) -> None:
        """Keep `nbytes` bytes and release the rest."""
        less = self.nbytes - nbytes
        if less > 0:
            self.nbytes = nbytes
            self._client.memory._release(self._client, less)

    def __del__(self) -> None:
        self.shrink()


def request_memory(configured: int, processes: int = 1) -> RequestMemory:
    """Return the budget of one of `processes` processes.

    `configured` is the budget of all; 0 selects a quarter of the memory limit.
    """
    return RequestMemory((configured or memory_limit() // _SHARE) // max(processes, 1))


def memory_limit(root: Path = Path("/")) -> int:
    """Return how much memory the process may use, in bytes.

    It is the minimum of physical memory, resource limits and the limits of its control groups.
    """
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_group_limits(root)]
    limits = (
        resource.getrlimit(resource.RLIMIT_AS)[0],
        resource.getrlimit(resource.RLIMIT_DATA)[0],
    )
    return min([*found, *[limit for limit in limits if limit != resource.RLIM_INFINITY]])


def _group_limits(root: Path) -> list[int]:
    """Return the memory limits of the control groups (v1 and v2), from the own one to the root."""
    found: list[int] = []
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = Path(path.lstrip("/"))
        texts = [_text(folder / group / name).strip() for group in (own, *own.parents)]
        found += [int(text) for text in texts if text.isdigit()]
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
