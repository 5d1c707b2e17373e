"""Shards: the units of work that are committed as one output part each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat

_MAX_PIECES = 4096
_READERS = 8


class FileRange(msgspec.Struct, frozen=True, array_like=True):
    """A range of a file, by its index; the format defines the unit of `start` and `stop`."""

    file: int
    start: int
    stop: int


class Shard(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive pieces with `nbytes` in all."""

    number: int
    nbytes: int
    pieces: tuple[FileRange, ...]


def plan_shards(files: Sequence[InputFile], reader: InputFormat, shard_bytes: int) -> list[Shard]:
    """Cut files into shards of about `shard_bytes`.

    Large files are cut where the format allows. Small files share a shard, so that their rows can
    share batches. The plan depends on the files only, never on how fast they are read.
    """
    with ThreadPoolExecutor(_READERS) as readers:
        cuts = list(readers.map(lambda file: reader.split(file, shard_bytes), files))
    shards: list[Shard] = []
    pieces: list[FileRange] = []
    total = 0
    for index, ranges in enumerate(cuts):
        for start, stop, nbytes in ranges:
            if pieces and (total + nbytes > shard_bytes or len(pieces) == _MAX_PIECES):
                shards.append(Shard(len(shards), total, tuple(pieces)))
                pieces, total = [], 0
            last = pieces[-1] if pieces else None
            if last is not None and (last.file, last.stop) == (index, start):
                # read in one go: the file is opened once
                pieces[-1] = FileRange(index, last.start, stop)
            else:
                pieces.append(FileRange(index, start, stop))
            total += nbytes
    if pieces:
        shards.append(Shard(len(shards), total, tuple(pieces)))
    return shards
