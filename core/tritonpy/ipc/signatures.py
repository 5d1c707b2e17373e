"""Names, types and shapes of the tensors of one request: said once, then named by a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Optional

import numpy as np

from .frame import ProtocolError

_MOST = 4096  # signatures that are remembered: a model whose shapes never repeat must not fill the memory

Wants = Optional[tuple[str, ...]]  # the outputs that a request asks for; None: all


class Written:
    """The signatures that this end has announced."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._next = 0
        self._news: list[Any] = []
        self._reset = False

    def number(self, tensors: Sequence[Any], wants: Wants) -> int:
        """Return the number of a signature; tensors have `name`, `datatype` and `shape`."""
        key = (wants, tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in tensors]))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self._next += 1
            self._news.append([number, wants, key[1]])
        return number

    def begin(self) -> None:
        """Start a frame: the only moment when old numbers may be given up."""
        if len(self._numbers) >= _MOST:
            self._numbers.clear()
            self._reset = True

    def news(self) -> dict[str, Any]:
        """Return what the other end must learn with this frame, for its JSON; the same again until it is `announced`."""
        if not self._news:
            return {}
        news: dict[str, Any] = {"signatures": self._news}
        if self._reset:
            news["forget"] = True
        return news

    def announced(self) -> None:
        """Take note that the news are on their way."""
        self._news, self._reset = [], False


class Column:
    """One tensor of a signature; `nbytes` is None for BYTES, whose size each request says."""

    __slots__ = ("datatype", "dtype", "name", "nbytes", "shape")

    def __init__(self, name: str, datatype: str, shape: tuple[int, ...], dtype: np.dtype | None) -> None:
        self.name = name
        self.datatype = datatype
        self.shape = shape
        self.dtype = dtype
        self.nbytes = None if dtype is None else dtype.itemsize * prod(shape)


class Signature:
    """What a number stands for.

    `key` is equal in signatures of the same tensors, `places` are those of the columns by their names; `sized`: there are columns, of
    different names, and every row of them has the same size, `nbytes`.
    """

    __slots__ = ("columns", "key", "nbytes", "places", "sized", "wants")

    def __init__(self, columns: list[Column], wants: Wants) -> None:
        self.columns = columns
        self.wants = wants
        self.places = {column.name: place for place, column in enumerate(columns)}
        self.nbytes = sum([column.nbytes or 0 for column in columns])
        self.key = tuple([(column.name, column.datatype, column.shape) for column in columns])
        self.sized = 0 < len(self.places) == len(columns) and all([column.nbytes is not None for column in columns])


class Known:
    """The signatures that the other end has announced; `dtypes` gives numpy's type of each data type, None for BYTES."""

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self._dtypes = dtypes
        self._signatures: dict[int, Signature] = {}

    def learn(self, extras: Mapping[str, Any]) -> None:
        """Take the news of a frame. Raises ProtocolError."""
        if extras.get("forget"):
            self._signatures.clear()
        try:
            for number, wants, columns in extras.get("signatures", ()):
                made = [self._column(_text(name), datatype, tuple(shape)) for name, datatype, shape in columns]
                self._signatures[number] = Signature(made, None if wants is None else tuple(map(_text, wants)))
        except (TypeError, ValueError, KeyError) as error:
            raise ProtocolError(f"a signature is broken: {error!r}") from error

    def get(self, number: int) -> Signature:
        """Return the signature. Raises ProtocolError for a number that was not announced."""
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
