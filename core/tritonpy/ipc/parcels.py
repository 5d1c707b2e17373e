"""Shared memory that is lent for the length of a frame."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from . import memory_file
from .frame import ProtocolError

_SMALLEST = 1 << 16
KEEP = 128 << 20  # bytes of unused parcels that stay for the next frame: fresh memory costs a page fault per 4 KiB
KEEP_PARCELS = 32  # of them at most: each is an open descriptor at either end


class Parcel:
    """One piece of memory of the lender. `descriptor` is set until the other side has been sent it."""

    __slots__ = ("array", "descriptor", "id", "size")

    def __init__(self, number: int, size: int) -> None:
        self.id = number
        self.size = size
        self.descriptor: int | None = memory_file.create(size)
        try:
            self.array = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the descriptor, if it was not sent; the memory goes with its last view."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class Lender:
    """Makes parcels of power-of-two sizes, and uses them again when they come back.

    `take_back` may run in another thread, and in the middle of the rest: there is no lock that a destructor could meet a second time.
    """

    def __init__(self, keep: int = KEEP) -> None:
        self._keep = keep
        self._next = 1
        self._lent: dict[int, Parcel] = {}
        self._back: deque[Parcel] = deque()
        self._unused: OrderedDict[int, Parcel] = OrderedDict()
        self._unused_bytes = 0
        self._forgotten: list[int] = []

    def lend(self, size: int) -> Parcel:
        """Return a parcel of at least `size` bytes. Raises OSError where there is no memory."""
        self._settle()
        size = max(_SMALLEST, 1 << (size - 1).bit_length())
        parcel = next((each for each in self._unused.values() if each.size == size), None)
        if parcel is None:
            parcel = Parcel(self._next, size)
            self._next += 1
        else:
            del self._unused[parcel.id]
            self._unused_bytes -= size
        self._lent[parcel.id] = parcel
        return parcel

    def take_back(self, numbers: Sequence[int]) -> None:
        """Take parcels that the other side has done with. Raises ProtocolError for one that is not lent."""
        for number in numbers:
            parcel = self._lent.pop(number, None)
            if parcel is None:
                raise ProtocolError(f"parcel {number} came back and was not lent")
            self._back.append(parcel)

    def forgotten(self) -> list[int]:
        """Return the parcels given up since the last call, which the other side may unmap: too much was unused."""
        self._settle()
        forgotten, self._forgotten = self._forgotten, []
        return forgotten

    @property
    def unused_bytes(self) -> int:
        """How much memory is kept to be lent again."""
        return self._unused_bytes + sum(parcel.size for parcel in tuple(self._back))

    def close(self) -> None:
        """Give everything up, without a word to the other side."""
        for parcel in (*self._lent.values(), *self._back, *self._unused.values()):
            parcel.close()
        self._lent.clear()
        self._back.clear()
        self._unused.clear()
        self._unused_bytes = 0

    def _settle(self) -> None:
        while self._back:
            parcel = self._back.popleft()
            self._unused[parcel.id] = parcel
            self._unused_bytes += parcel.size
        while self._unused_bytes > self._keep or len(self._unused) > KEEP_PARCELS:
            _, parcel = self._unused.popitem(last=False)
            self._unused_bytes -= parcel.size
            parcel.close()
            self._forgotten.append(parcel.id)


class Borrower:
    """Maps the other side's parcels and notes when the last view on one is gone."""

    def __init__(self, on_return: Callable[[], None] | None = None) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._watched: dict[int, weakref.ref[np.ndarray]] = {}
        self._on_return = on_return
        self.returned: deque[int] = deque()  # to be sent back

    def map(self, number: int, descriptor: int) -> None:
        """Take a new parcel; the descriptor stays the caller's. Raises ProtocolError for one that cannot be mapped."""
        if number in self._maps:
            raise ProtocolError(f"parcel {number} is not new")
        try:
            self._maps[number] = memory_file.map_whole(descriptor)
        except (OSError, ValueError) as error:
            raise ProtocolError(f"parcel {number} cannot be mapped: {error}") from error

    def borrow(self, number: int, used: int) -> np.ndarray:
        """Return the first `used` bytes of a parcel, which is borrowed until the last view on them is gone.

        Raises ProtocolError.
        """
        memory = self._maps.get(number)
        if memory is None or used > len(memory) or number in self._watched:
            raise ProtocolError(f"parcel {number} is not there to be borrowed")
        # A fresh array each time: every view on it has it as its base, so that its end is the end of all of them.
        array = np.frombuffer(memory, np.uint8, used)
        self._watched[number] = weakref.ref(array, partial(self._gone, number))
        return array

    def forget(self, numbers: Sequence[int]) -> None:
        """Unmap parcels that the lender will not use again."""
        for number in numbers:
            self._maps.pop(number, None)

    def close(self) -> None:
        """Unmap everything; what is still viewed goes with its last view, and nobody is told."""
        self._maps.clear()
        self._watched.clear()

    def _gone(self, number: int, _view: object) -> None:
        # Runs wherever the last view went, in the middle of anything: no lock may be taken here.
        if self._watched.pop(number, None) is not None:
            self.returned.append(number)
            if self._on_return is not None:
                self._on_return()
