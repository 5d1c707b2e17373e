"""System shared memory: the inputs of all requests, and room for the outputs of each that is in flight."""

from __future__ import annotations

import math
import mmap
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tritonpy import ITEMSIZES, StartupError
from tritonpy_bench.inputs.corpus import Corpus, Step
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.control import Control
from tritonpy_bench.target.facts import ModelFacts, TensorFacts

_MEMORY = Path("/dev/shm")  # noqa: S108  where Linux keeps POSIX shared memory
_ALIGNED = 64


class Slice(NamedTuple):
    """A part of a region."""

    region: str
    offset: int
    byte_size: int


class Regions:
    """Two regions that are registered with the server until `close`. `inputs[step][n]` and `output(place, n)` are slices.

    Raises StartupError where there is no shared memory, and what `control` raises.
    """

    def __init__(self, control: Control, facts: ModelFacts, options: BenchOptions, corpus: Corpus, places: int) -> None:
        self._control = control
        self._made: list[str] = []
        self._sizes = _output_sizes(facts, options)
        self._output_offsets, self._output_size = _layout(self._sizes)
        tag = secrets.token_hex(6)
        self.input_region, self.output_region = f"bench-in-{tag}", f"bench-out-{tag}"
        self.inputs: list[list[Slice]] = []
        try:
            self._put(corpus)
            self._make(self.output_region, self._output_size * places)
        except BaseException:
            self.close()
            raise

    def output(self, place: int, number: int) -> Slice:
        """Return where one output of the request in flight at `place` goes."""
        offset = place * self._output_size + self._output_offsets[number]
        return Slice(self.output_region, offset, self._sizes[number])

    def close(self) -> None:
        """Take the registrations back and give the memory away."""
        for region in self._made:
            _path(region).unlink(missing_ok=True)
        for region in self._made:
            try:
                self._control.unregister(region)
            except StartupError:  # the server is gone, and with it the registration
                continue
        self._made.clear()

    def _put(self, corpus: Corpus) -> None:
        offsets, total = _layout([len(tensor.content) for step in corpus.steps for tensor in step])
        places = iter(offsets)
        for step in corpus.steps:
            self.inputs.append([Slice(self.input_region, next(places), len(tensor.content)) for tensor in step])
        self._make(self.input_region, total, zip(corpus.steps, self.inputs, strict=True))

    def _make(self, region: str, byte_size: int, content: Iterable[tuple[Step, list[Slice]]] = ()) -> None:
        if not _MEMORY.is_dir():
            raise StartupError(f"--shared-memory system needs {_MEMORY}, which this machine does not have")
        descriptor = os.open(_path(region), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        self._made.append(region)
        try:
            os.ftruncate(descriptor, max(byte_size, 1))
            with mmap.mmap(descriptor, max(byte_size, 1)) as memory:
                for step, slices in content:
                    for tensor, part in zip(step, slices, strict=True):
                        memory[part.offset : part.offset + part.byte_size] = tensor.content
        finally:
            os.close(descriptor)
        self._control.register(region, f"/{region}", max(byte_size, 1))


def _path(region: str) -> Path:
    return _MEMORY / region


def _layout(sizes: list[int]) -> tuple[list[int], int]:
    """Return the offsets of blocks of these sizes, each aligned, and the size of all."""
    offsets, total = [], 0
    for size in sizes:
        offsets.append(total)
        total += -(-size // _ALIGNED) * _ALIGNED
    return offsets, total


def _output_sizes(facts: ModelFacts, options: BenchOptions) -> list[int]:
    batch = options.batch if facts.max_batch_size else 1
    return [_output_size(tensor, options) * batch for tensor in facts.outputs]


def _output_size(tensor: TensorFacts, options: BenchOptions) -> int:
    itemsize = ITEMSIZES.get(tensor.datatype, 0)
    if not itemsize or -1 in tensor.dims:
        return options.output_shared_memory_size
    return math.prod(tensor.dims) * itemsize
