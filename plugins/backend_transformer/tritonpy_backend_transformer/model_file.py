"""Metadata of `model.bin`: the kind of the model and the shapes of its weights.

CTranslate2 does not report a model's positions, width or memory. Its errors for truncated files
only say that reading failed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from tritonpy import InvalidArgument

# The versions that store the type of each weight; CTranslate2 1.x wrote older ones.
VERSIONS = range(4, 7)
_ITEM_SIZES = {0: 4, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2}
_FLOATS = frozenset({0, 4, 5})


@dataclass(frozen=True, slots=True)
class Weight:
    """An array in the file: its shape and the size of an element in bytes."""

    shape: tuple[int, ...]
    item_size: int
    is_float: bool


@dataclass(frozen=True, slots=True)
class ModelFile:
    """CTranslate2's name of the kind of model, and the weights by name."""

    kind: str
    weights: Mapping[str, Weight]

    def dimension(self, name: str, axis: int) -> int | None:
        """Return a dimension of a weight, or None if the model has no such weight."""
        weight = self.weights.get(name)
        return weight.shape[axis] if weight is not None and len(weight.shape) > axis else None


def read_model_file(path: Path) -> ModelFile:
    """Read the metadata of `path`. Raises `InvalidArgument` for other or incomplete files."""
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            return _read(file, size)
        except (struct.error, UnicodeDecodeError, KeyError) as error:
            raise InvalidArgument(
                f"'{path}' is damaged or truncated ({size} bytes): convert or copy the model again"
            ) from error
        except _Unreadable as error:
            raise InvalidArgument(f"'{path}' {error}") from error


class _Unreadable(Exception):
    """The file has an unknown format."""


def _read(file: BinaryIO, size: int) -> ModelFile:
    version = _number(file, "I")
    if version not in VERSIONS:
        raise _Unreadable(
            "is not a CTranslate2 model, or has an unknown version: convert the model again"
        )
    kind = _string(file)
    _number(file, "I")
    weights = dict([_weight(file, size) for _ in range(_number(file, "I"))])
    for _ in range(_number(file, "I")):
        alias, name = _string(file), _string(file)
        weights[alias] = Weight(weights[name].shape, 0, is_float=False)  # an alias takes no memory
    return ModelFile(kind, weights)


def _weight(file: BinaryIO, size: int) -> tuple[str, Weight]:
    name = _string(file)
    shape = tuple(_number(file, "I") for _ in range(_number(file, "B")))
    kind = _number(file, "B")
    _number(file, "I")
    weight = Weight(shape, _ITEM_SIZES[kind], kind in _FLOATS)
    end = file.tell() + prod(shape) * weight.item_size
    if end > size:
        raise struct.error(name)
    file.seek(end)
    return name, weight


def _number(file: BinaryIO, code: str) -> int:
    (number,) = struct.unpack(f"<{code}", file.read(struct.calcsize(code)))
    return int(number)


def _string(file: BinaryIO) -> str:
    length = _number(file, "H")
    data = file.read(length)
    if len(data) < length:
        raise struct.error("text")
    return data.removesuffix(b"\0").decode()
