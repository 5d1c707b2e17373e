"""Names, types and shapes of the tensors of a request: sent once, then referred to by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Optional

import numpy as np

from .frame import ProtocolError

# Remembered signatures: a model whose shapes never repeat must not fill the memory.
_MAX_SIGNATURES = 4096

RequestedOutputs = Optional[tuple[str, ...]]  # outputs that a request asks for; None: all


class SignatureWriter:
    """The signatures that this end has announced."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._next = 0
        self._unsent: list[Any] = []
        self._reset = False

    def number(self, tensors: Sequence[Any], requested: RequestedOutputs) -> int:
        """Return the number of a signature; tensors have `name`, `datatype` and `shape`."""
        key = (
            requested,
            tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in tensors]),
        )
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self._next += 1
            self._unsent.append([number, requested, key[1]])
        return number

    def begin(self) -> None:
        """Start a frame, the only point at which old numbers may be discarded."""
        if len(self._numbers) >= _MAX_SIGNATURES:
            self._numbers.clear()
            self._reset = True

    def new_signatures(self) -> dict[str, Any]:
        """Return the JSON that announces new signatures; the same until `mark_sent` is called."""
        if not self._unsent:
            return {}
        new_signatures: dict[str, Any] = {"signatures": self._unsent}
        if self._reset:
            new_signatures["forget"] = True
        return new_signatures

    def mark_sent(self) -> None:
        """Record that the new signatures have been sent."""
        self._unsent, self._reset = [], False


class Column:
    """One tensor of a signature; `nbytes` is None for BYTES, whose size each request specifies."""

    __slots__ = ("datatype", "dtype", "name", "nbytes", "shape")

    def __init__(
        self, name: str, datatype: str, shape: tuple[int, ...], dtype: np.dtype | None
    ) -> None:
        self.name = name
        self.datatype = datatype
        self.shape = shape
        self.dtype = dtype
        self.nbytes = None if dtype is None else dtype.itemsize * prod(shape)


class TensorSignature:
    """The columns and requested outputs that a signature number stands for.

    `key` is equal for signatures of the same tensors. `positions` maps names to columns. `sized`
    means that all rows have the same size, `nbytes`, and that the column names are distinct.
    """

    __slots__ = ("columns", "key", "nbytes", "positions", "requested", "sized")

    def __init__(self, columns: list[Column], requested: RequestedOutputs) -> None:
        self.columns = columns
        self.requested = requested
        self.positions = {column.name: place for place, column in enumerate(columns)}
        self.nbytes = sum([column.nbytes or 0 for column in columns])
        self.key = tuple([(column.name, column.datatype, column.shape) for column in columns])
        self.sized = 0 < len(self.positions) == len(columns) and all(
            [column.nbytes is not None for column in columns]
        )


class SignatureReader:
    """The signatures that the other end has announced.

    `dtypes` maps data types to numpy types, and BYTES to None.
    """

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self._dtypes = dtypes
        self._signatures: dict[int, TensorSignature] = {}

    def learn(self, extras: Mapping[str, Any]) -> None:
        """Add the signatures announced in a frame. Raises `ProtocolError`."""
        if extras.get("forget"):
            self._signatures.clear()
        try:
            for number, requested, columns in extras.get("signatures", ()):
                made = [
                    self._column(_text(name), datatype, tuple(shape))
                    for name, datatype, shape in columns
                ]
                self._signatures[number] = TensorSignature(
                    made, None if requested is None else tuple(map(_text, requested))
                )
        except (TypeError, ValueError, KeyError) as error:
            raise ProtocolError(f"invalid signature: {error!r}") from error

    def get(self, number: int) -> TensorSignature:
        """Return a signature. Raises `ProtocolError` for a number that was not announced."""
        try:
            return self._signatures[number]
        except KeyError:
            raise ProtocolError(f"signature {number} was never announced") from None

    def _column(self, name: str, datatype: str, shape: tuple[int, ...]) -> Column:
        if any(not isinstance(each, int) or each < 0 for each in shape):
            raise ValueError(f"shape {shape}")
        dtype = self._dtypes[datatype]
        return Column(name, datatype, shape, None if datatype == "BYTES" else np.dtype(dtype))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value
