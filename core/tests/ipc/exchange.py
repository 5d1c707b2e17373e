"""Two ends in one process, and tensors to send between them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tritonpy.ipc import Endpoint, Frame
from tritonpy.ipc.endpoint import PLAIN_DTYPES
from tritonpy.types import DTYPES

KIND = 77


class Said(NamedTuple):
    """A tensor as an end gives and gets it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: npt.NDArray[Any]

    @property
    def content(self) -> tuple[str, str, tuple[int, ...], bytes]:
        return self.name, self.datatype, self.shape, self.data.tobytes()


def tensor(datatype: str, shape: tuple[int, ...], raw: bytes, dtypes: Mapping[str, Any], name: str = "T") -> Said:
    """Return a tensor of the first bytes of `raw`, repeated as often as needed; BYTES takes them as they are."""
    if datatype == "BYTES":
        return Said(name, datatype, shape, np.frombuffer(raw, np.uint8))
    dtype = np.dtype(dtypes[datatype])
    size = dtype.itemsize * prod(shape)
    raw = (raw * (size // max(len(raw), 1) + 1))[:size] if raw else bytes(size)
    return Said(name, datatype, shape, np.frombuffer(raw, dtype).reshape(shape))


def floats(count: int, value: float = 1.5) -> Said:
    """Return an FP32 vector."""
    return Said("T", "FP32", (count,), np.full(count, value, np.float32))


SIGNATURES = st.lists(
    st.tuples(
        st.text(max_size=5),
        st.sampled_from(sorted(DTYPES)),
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
    ),
    max_size=3,
)
WANTS = st.none() | st.lists(st.text(max_size=3), max_size=2).map(tuple)


@st.composite
def requests(draw: st.DrawFn, dtypes: Mapping[str, Any] = DTYPES) -> tuple[list[list[Said]], list[Any]]:
    """Draw rows of tensors, neighbours often alike, and what each row wants."""
    kinds = draw(st.lists(st.tuples(SIGNATURES, WANTS), min_size=1, max_size=3))
    rows, wants = [], []
    for index, count in draw(st.lists(st.tuples(st.integers(0, len(kinds) - 1), st.integers(1, 4)), max_size=4)):
        signature, wanted = kinds[index]
        for _ in range(count):
            raw = draw(st.binary(max_size=20))
            rows.append([tensor(datatype, shape, raw, dtypes, name) for name, datatype, shape in signature])
            wants.append(wanted)
    return rows, wants


class Pair:
    """A server's end and a worker's. `told` counts what each was told of free parcels."""

    def __init__(self) -> None:
        self.told = {"server": 0, "worker": 0}
        self.server = Endpoint(DTYPES, lambda: self._tell("server"))
        self.worker = Endpoint(PLAIN_DTYPES, lambda: self._tell("worker"))

    def _tell(self, who: str) -> None:
        self.told[who] += 1

    def close(self) -> None:
        self.server.close()
        self.worker.close()

    def settle(self) -> None:
        """Hand back what is free at both ends."""
        assert self.server.feed(self.worker.compose_returns()) == []
        assert self.worker.feed(self.server.compose_returns()) == []


@contextmanager
def pair() -> Iterator[Pair]:
    """Open both ends, and close them."""
    both = Pair()
    try:
        yield both
    finally:
        both.close()


def carry(sent: tuple[bytes, Sequence[int]], receiver: Endpoint, cuts: Sequence[int] = ()) -> list[Frame]:
    """Do what a socket does: pass the bytes on in pieces, descriptors as copies with the first; the sender's are closed."""
    data, descriptors = sent
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    copies = [os.dup(descriptor) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    frames = []
    for start, stop in pairwise(places):
        frames += receiver.feed(data[start:stop], copies)
        copies = []
    return frames


def contents(rows: Sequence[Sequence[Said]]) -> list[list[tuple[str, str, tuple[int, ...], bytes]]]:
    """Return what can be compared."""
    return [[each.content for each in row] for row in rows]


def descriptors() -> int:
    """Return how many files this process has open, but for those that only the collector still knows."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """Return how many pieces of shared memory this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sum("/memfd:tritonpy" in line or "/tritonpy-" in line for line in file)
