"""Two ends in one process, and tensors to exchange between them."""

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

from tritonpy_ipc import Endpoint, Frame
from tritonpy_ipc.endpoint import PLAIN_DTYPES
from tritonpy_types import DTYPES

KIND = 77


class SampleTensor(NamedTuple):
    """A tensor as ends send and receive it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: npt.NDArray[Any]

    @property
    def content(self) -> tuple[str, str, tuple[int, ...], bytes]:
        return self.name, self.datatype, self.shape, self.data.tobytes()


def tensor(
    datatype: str, shape: tuple[int, ...], raw: bytes, dtypes: Mapping[str, Any], name: str = "T"
) -> SampleTensor:
    """Return a tensor of the bytes `raw`, repeated if needed; BYTES takes them unchanged."""
    if datatype == "BYTES":
        return SampleTensor(name, datatype, shape, np.frombuffer(raw, np.uint8))
    dtype = np.dtype(dtypes[datatype])
    size = dtype.itemsize * prod(shape)
    raw = (raw * (size // max(len(raw), 1) + 1))[:size] if raw else bytes(size)
    return SampleTensor(name, datatype, shape, np.frombuffer(raw, dtype).reshape(shape))


def floats(count: int, value: float = 1.5) -> SampleTensor:
    """Return an FP32 vector."""
    return SampleTensor("T", "FP32", (count,), np.full(count, value, np.float32))


SIGNATURES = st.lists(
    st.tuples(
        st.text(max_size=5),
        st.sampled_from(sorted(DTYPES)),
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
    ),
    max_size=3,
)
REQUESTED_OUTPUTS = st.none() | st.lists(st.text(max_size=3), max_size=2).map(tuple)


@st.composite
def requests(
    draw: st.DrawFn, dtypes: Mapping[str, Any] = DTYPES
) -> tuple[list[list[SampleTensor]], list[Any]]:
    """Draw rows of tensors, often equal in succession, and their requested outputs."""
    kinds = draw(st.lists(st.tuples(SIGNATURES, REQUESTED_OUTPUTS), min_size=1, max_size=3))
    rows, requested = [], []
    for index, count in draw(
        st.lists(st.tuples(st.integers(0, len(kinds) - 1), st.integers(1, 4)), max_size=4)
    ):
        signature, outputs = kinds[index]
        for _ in range(count):
            raw = draw(st.binary(max_size=20))
            rows.append(
                [tensor(datatype, shape, raw, dtypes, name) for name, datatype, shape in signature]
            )
            requested.append(outputs)
    return rows, requested


class Pair:
    """A server's end and a worker's end. `returned` counts callbacks about free segments."""

    def __init__(self) -> None:
        self.returned = {"server": 0, "worker": 0}
        self.server = Endpoint(DTYPES, lambda: self._count_return("server"))
        self.worker = Endpoint(PLAIN_DTYPES, lambda: self._count_return("worker"))

    def _count_return(self, end: str) -> None:
        self.returned[end] += 1

    def close(self) -> None:
        self.server.close()
        self.worker.close()

    def settle(self) -> None:
        """Return free segments at both ends."""
        assert self.server.feed(self.worker.compose_returns()) == []
        assert self.worker.feed(self.server.compose_returns()) == []


@contextmanager
def pair() -> Iterator[Pair]:
    """Open both ends and close them afterwards."""
    both = Pair()
    try:
        yield both
    finally:
        both.close()


def carry(
    sent: tuple[bytes, Sequence[int]], receiver: Endpoint, cuts: Sequence[int] = ()
) -> list[Frame]:
    """Transfer a frame as a socket does, in pieces, and close the descriptors of the sender.

    The first piece carries copies of the descriptors.
    """
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


def contents(
    rows: Sequence[Sequence[SampleTensor]],
) -> list[list[tuple[str, str, tuple[int, ...], bytes]]]:
    """Return the rows in a form that can be compared."""
    return [[each.content for each in row] for row in rows]


def descriptors() -> int:
    """Return the number of open files of this process, after a garbage collection."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """Return the number of mapped shared segments of this process."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sum("/memfd:tritonpy" in line or "/tritonpy-" in line for line in file)
