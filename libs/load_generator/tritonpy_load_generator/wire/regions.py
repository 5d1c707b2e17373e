"""System shared memory for the inputs of all requests and the outputs of those in flight."""

from __future__ import annotations

import math
import mmap
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tritonpy import StartupError
from tritonpy.frontend import ITEMSIZES
from tritonpy_load_generator.inputs.corpus import Corpus, Step
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.control import ControlClient
from tritonpy_load_generator.target.metadata import ModelDescription, TensorDescription

_MEMORY = Path("/dev/shm")  # noqa: S108  POSIX shared memory on Linux
_ALIGNED = 64


class Slice(NamedTuple):
    """A part of a region."""

    region: str
    offset: int
    byte_size: int


class ClientRegions:
    """Two regions, registered with the server until `close`.

    `inputs[step][n]` and `output(slot, n)` are slices.

    Raises StartupError if the machine has no shared memory, and the errors of `control`.
    """

    def __init__(
        self,
        control: ControlClient,
        model: ModelDescription,
        options: LoadOptions,
        corpus: Corpus,
        slot_count: int,
    ) -> None:
        self._control = control
        self._created: list[str] = []
        self._sizes = _output_sizes(model, options)
        self._output_offsets, self._output_size = _layout(self._sizes)
        tag = secrets.token_hex(6)
        self.input_region, self.output_region = f"bench-in-{tag}", f"bench-out-{tag}"
        self.inputs: list[list[Slice]] = []
        try:
            self._write_inputs(corpus)
            self._create(self.output_region, self._output_size * slot_count)
        except BaseException:
            self.close()
            raise

    def output(self, slot: int, number: int) -> Slice:
        """Return where one output of the request in flight at `slot` goes."""
        offset = slot * self._output_size + self._output_offsets[number]
        return Slice(self.output_region, offset, self._sizes[number])

    def close(self) -> None:
        """Unregister the regions and free their memory."""
        for region in self._created:
            _path(region).unlink(missing_ok=True)
        for region in self._created:
            try:
                self._control.unregister(region)
            except StartupError:  # the server is gone, and its registration with it
                continue
        self._created.clear()

    def _write_inputs(self, corpus: Corpus) -> None:
        offsets, total = _layout([len(tensor.content) for step in corpus.steps for tensor in step])
        starts = iter(offsets)
        for step in corpus.steps:
            self.inputs.append(
                [Slice(self.input_region, next(starts), len(tensor.content)) for tensor in step]
            )
        self._create(self.input_region, total, zip(corpus.steps, self.inputs, strict=True))

    def _create(
        self, region: str, byte_size: int, content: Iterable[tuple[Step, list[Slice]]] = ()
    ) -> None:
        if not _MEMORY.is_dir():
            raise StartupError(
                f"--shared-memory system needs {_MEMORY}, which this machine does not have"
            )
        descriptor = os.open(_path(region), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        self._created.append(region)
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
    """Return the aligned offsets of blocks of these sizes, and the total size."""
    offsets, total = [], 0
    for size in sizes:
        offsets.append(total)
        total += -(-size // _ALIGNED) * _ALIGNED
    return offsets, total


def _output_sizes(model: ModelDescription, options: LoadOptions) -> list[int]:
    batch = options.batch if model.max_batch_size else 1
    return [_output_size(tensor, options) * batch for tensor in model.outputs]


def _output_size(tensor: TensorDescription, options: LoadOptions) -> int:
    itemsize = ITEMSIZES.get(tensor.datatype, 0)
    if not itemsize or -1 in tensor.dims:
        return options.output_shared_memory_size
    return math.prod(tensor.dims) * itemsize
