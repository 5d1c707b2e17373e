"""Simulated GPUs: memory, streams, events and graphs, asynchronous and strict about misuse.

Work on a stream is done only when code waits for it. Code that forgets to wait, or overwrites
memory before it is read, gets wrong results.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

DEVICE_MEMORY = 1 << 60  # above all host addresses


class Misuse(AssertionError):
    """Misuse that causes wrong results or a crash on a real GPU."""


@dataclass(eq=False)
class Stream:
    device: int
    priority: int = 0
    hasty: bool = False  # runs its work immediately, as an idle GPU does
    work: deque[Callable[[], None]] = field(default_factory=deque)
    done: int = 0  # number of finished work items
    graph: list[Callable[[Stream], None]] | None = None  # captured work, during a capture
    broken: bool = False  # the capture failed

    @property
    def end(self) -> int:
        return self.done + len(self.work)


@dataclass(eq=False)
class Event:
    device: int
    flags: int
    stream: Stream | None = None
    position: int = 0  # position in the stream's work


class Machine:
    """`gpus` GPUs of `size` bytes each.

    `refuse` makes the next call of a CUDA function fail with an error number.
    """

    def __init__(self, gpus: int = 2, size: int = 1 << 30) -> None:
        self.gpus = gpus
        self.lock = threading.RLock()
        self.refusals: dict[str, int] = {}
        self.pageable_copies = 0  # copies with unpinned host memory
        self.copies = 0
        self.launches = 0
        self.hasty: tuple[int, ...] = ()  # the hasty streams, by order of creation
        self.streams = 0
        self.crashes = 0  # simulated process crashes
        self._free = dict.fromkeys(range(gpus), size)
        self._memory: dict[int, tuple[int, np.ndarray]] = {}  # address -> device, bytes
        self._pinned: dict[int, np.ndarray] = {}
        self._handles: dict[int, object] = {}
        self._numbers = itertools.count(0x1000)
        self._addresses = itertools.count(DEVICE_MEMORY, 1 << 32)
        self._current = threading.local()

    @property
    def device(self) -> int:
        return getattr(self._current, "device", 0)

    @device.setter
    def device(self, device: int) -> None:
        self._current.device = device

    def held(self, device: int) -> int:
        """Return the bytes allocated on a GPU."""
        return sum(data.nbytes for where, data in self._memory.values() if where == device)

    def allocate(self, size: int) -> int:
        if size > self._free[self.device]:
            return 0
        self._free[self.device] -= size
        address = next(self._addresses)
        self._memory[address] = self.device, np.full(size, 0xAB, np.uint8)
        return address

    def free(self, address: int) -> bool:
        if address not in self._memory:
            return False
        self.drain_all()
        device, data = self._memory.pop(address)
        self._free[device] += data.nbytes
        return True

    def pin(self, size: int) -> int:
        data = np.empty(size, np.uint8)
        self._pinned[data.ctypes.data] = data
        return data.ctypes.data

    def unpin(self, address: int) -> bool:
        self.drain_all()
        return self._pinned.pop(address, None) is not None

    def is_pinned(self, address: int) -> bool:
        return any(start <= address < start + data.nbytes for start, data in self._pinned.items())

    def view(self, address: int, size: int, device: int | None = None) -> np.ndarray:
        """Return the bytes at an address; with `device` they must be on this device."""
        if address < DEVICE_MEMORY:
            if device is not None:
                raise Misuse(f"{address:#x} is no address of a GPU")
            return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
        start = DEVICE_MEMORY + (address - DEVICE_MEMORY) // (1 << 32) * (1 << 32)
        if start not in self._memory:
            raise Misuse(f"{address:#x} was freed, or never allocated")
        where, data = self._memory[start]
        if device not in {None, where}:
            raise Misuse(f"memory of GPU {where} is used on GPU {device}")
        if address - start + size > data.nbytes:
            raise Misuse(f"{size} bytes at {address - start} of {data.nbytes}")
        return data[address - start : address - start + size]

    def add(self, thing: object) -> int:
        number = next(self._numbers)
        self._handles[number] = thing
        return number

    def get(self, number: int, kind: type) -> object | None:
        thing = self._handles.get(int(number))
        return thing if isinstance(thing, kind) else None

    def remove(self, number: int, kind: type) -> bool:
        return self.get(number, kind) is not None and self._handles.pop(int(number)) is not None

    def count(self, kind: type) -> int:
        """Return how many objects of a kind exist."""
        return sum(isinstance(thing, kind) for thing in self._handles.values())

    def put(self, stream: Stream, work: Callable[[Stream], None]) -> None:
        """Enqueue work on a stream; during a capture it is recorded instead."""
        if stream.graph is not None:
            stream.graph.append(work)
        else:
            stream.work.append(lambda: work(stream))
            if stream.hasty:
                self.drain(stream)

    def record(self, event: Event, stream: Stream) -> None:
        event.stream, event.position = stream, stream.end

    def drain(self, stream: Stream, until: int | None = None) -> None:
        """Run the work of a stream, up to a position."""
        while stream.work and (until is None or stream.done < until):
            work = stream.work.popleft()
            stream.done += 1
            work()

    def reach(self, event: Event) -> None:
        """Run all work that an event waits for."""
        if event.stream is not None:
            self.drain(event.stream, event.position)

    def drain_all(self) -> None:
        for thing in list(self._handles.values()):
            if isinstance(thing, Stream):
                self.drain(thing)
