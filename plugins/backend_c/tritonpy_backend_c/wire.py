"""Words and texts that travel between Python and the C++ library.

Numbers are 64-bit words, texts are offsets and lengths in one array of bytes. `src/edge.cc` has the
other side.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import msgspec
import numpy as np

from tritonpy import DTYPES, ParameterValue, Tensor, Unsupported

# By the numbers of TRITONSERVER_DataType.
DATATYPES = (
    "INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "FP32", "FP64", "BYTES", "BF16",
)  # fmt: skip
DATATYPE_NUMBERS = {name: number for number, name in enumerate(DATATYPES)}
RESPONSE, RELEASE, RESCHEDULE, STATE, WATCH, LOG, METRIC, QUERY, CANCEL_CALL, TRACE = range(1, 11)
_SHORT = frozenset({RELEASE, RESCHEDULE, WATCH, CANCEL_CALL})
FINAL, EMPTY, RELEASED = 1, 2, 4  # flags of a response
MOST_INT = 2**63 - 1
_MOST_COPIED = 2048  # bytes of an input
_ALIGNMENT = 16
_PADDING = [bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT)]
_STRING, _INT, _BOOL, _DOUBLE, _BYTES = range(5)  # TRITONSERVER_ParameterType
_UINT8 = np.dtype(np.uint8)
_DTYPES = [DTYPES.get(name, _UINT8) for name in DATATYPES]
_ITEMSIZES = [
    0 if name in {"INVALID", "BYTES"} else dtype.itemsize
    for name, dtype in zip(DATATYPES, _DTYPES, strict=True)
]


def signed(number: int) -> int:
    """Return a number of up to 64 bits as the signed word with the same bits."""
    return (number + 2**63) % 2**64 - 2**63


class Words:
    """Words and texts for the library."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)
        self._text = bytearray()

    def add(self, *words: int) -> None:
        """Add words."""
        self._words += words

    def text(self, text: str | bytes) -> None:
        """Add a text."""
        if not text:
            self._words += (0, 0)
            return
        # A text that is no UTF-8 must not fail the other requests of its batch.
        data = text.encode(errors="replace") if isinstance(text, str) else text
        self._words += (len(self._text), len(data))
        self._text += data

    def spec(self, name: str, datatype: str, shape: Sequence[int]) -> None:
        """Add the description of a tensor."""
        self.text(name)
        self._words += (DATATYPE_NUMBERS[datatype], len(shape), *shape)

    def data(self, tensors: Sequence[Tensor]) -> None:
        """Add the place and size of each tensor's data. Raises `Unsupported` for a device's memory.

        A place is an address or, for few bytes, whose address costs more than a copy, -1 - offset
        in the texts. The texts must then live as long as the request.
        """
        words, text = self._words, self._text
        for tensor in tensors:
            data = tensor.data
            if not isinstance(data, np.ndarray):
                raise Unsupported(
                    f"input '{tensor.name}' is in the memory of a device, which backends in C "
                    "cannot read"
                )
            size = data.nbytes
            if size > _MOST_COPIED:
                words += (data.ctypes.data, size)
                continue
            text += _PADDING[len(text) % _ALIGNMENT]
            words += (-1 - len(text), size)
            text += data.tobytes()

    def parameters(self, parameters: Mapping[str, ParameterValue]) -> None:
        """Add parameters."""
        self._words.append(len(parameters))
        for name, value in parameters.items():
            if isinstance(value, bool):
                self._words.append(_BOOL)
                self.text(name)
                self._words += (value, 0)
            elif isinstance(value, int):
                self._words.append(_INT)
                self.text(name)
                self._words += (signed(value), 0)
            elif isinstance(value, float):
                self._words.append(_DOUBLE)
                self.text(name)
                self._words += (struct.unpack("q", struct.pack("d", value))[0], 0)
            else:
                self._words.append(_STRING)
                self.text(name)
                self.text(value)

    def pack(self) -> tuple[bytes, bytes]:
        """Return words and texts for a call."""
        return struct.pack(f"{len(self._words)}q", *self._words), bytes(self._text)


class HostEvent(msgspec.Struct, eq=False, gc=False):
    """One event of the library: see `tritonpy::Event`."""

    kind: int
    owner: int
    tag: int
    flags: int = 0
    code: int = -1
    text: str = ""
    pointer: int = 0
    value: float = 0.0
    parameters: Mapping[str, ParameterValue] = {}
    outputs: Sequence[Tensor] = ()


class Buffers:
    """Where the library writes words and bytes for one thread."""

    def __init__(self, words: int = 16384, nbytes: int = 262144) -> None:
        self._make(words, nbytes)

    def _make(self, words: int, nbytes: int) -> None:
        self.words = np.empty(words, np.int64)
        self.bytes = np.empty(nbytes, np.uint8)
        self.arguments = (self.words.ctypes.data, words, self.bytes.ctypes.data, nbytes)

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """Call a function that writes to the buffers; return the number of words.

        The buffers grow if it needs more.
        """
        count = function(*arguments, *self.arguments)
        if count < 0:
            words, nbytes = self.words[:2].tolist()
            self._make(max(words, len(self.words)), max(nbytes, len(self.bytes)))
            count = function(*arguments, *self.arguments)
        return count

    def content(self, count: int, nbytes: int) -> tuple[list[int], bytes]:
        """Return a copy of the first words and bytes."""
        return self.words[:count].tolist(), ctypes.string_at(self.arguments[2], nbytes)


class Reader:
    """Reads what the library wrote."""

    def __init__(self, words: list[int], data: bytes, at: int = 0) -> None:
        self._words = words
        self._data = data
        self._at = at

    def word(self) -> int:
        """Return the next word."""
        word = self._words[self._at]
        self._at += 1
        return word

    def take(self, count: int) -> list[int]:
        """Return the next words."""
        start = self._at
        self._at += count
        return self._words[start : self._at]

    def text(self) -> str:
        """Return the next text."""
        offset, length = self.take(2)
        return self._data[offset : offset + length].decode(errors="replace") if length else ""

    def parameters(self) -> dict[str, ParameterValue]:
        """Return parameters by name."""
        found: dict[str, ParameterValue] = {}
        for _ in range(self.word()):
            kind, name = self.word(), self.text()
            if kind in {_STRING, _BYTES}:
                found[name] = self.text()
                continue
            value, _ = self.take(2)
            if kind == _DOUBLE:
                found[name] = struct.unpack("d", struct.pack("q", value))[0]
            else:
                found[name] = bool(value) if kind == _BOOL else value
        return found

    def spec(self) -> tuple[str, int, tuple[int, ...]]:
        """Return name, number of the data type, and shape of a tensor."""
        name = self.text()
        datatype, dims = self.take(2)
        return name, datatype, tuple(self.take(dims))

    def events(self, count: int, tensors: KnownTensors) -> Iterator[HostEvent]:
        """Yield the events in the first `count` words."""
        words = self._words
        while self._at < count:
            at = self._at
            kind, owner, tag = words[at : at + 3]
            if kind in _SHORT:
                self._at = at + 3
                yield HostEvent(kind, owner, tag)
                continue
            flags, code, _, length, pointer, bits, parameter_count = words[at + 3 : at + 10]
            self._at = at + 5
            text = self.text() if length else ""
            self._at = at + 9
            parameters = self.parameters() if parameter_count else {}
            if not parameter_count:
                self._at = at + 10
            outputs = [self._output(tensors) for _ in range(self.word())]
            value = struct.unpack("d", struct.pack("q", bits))[0] if bits else 0.0
            yield HostEvent(
                kind, owner, tag, flags, code, text, pointer, value, parameters, outputs
            )

    def _output(self, tensors: KnownTensors) -> Tensor:
        number = self.word()
        known = tensors.get(number) if number >= 0 else KnownTensor.of(*self.spec())
        inside, place, size = self.take(3)
        fits = size == known.nbytes
        dtype = known.dtype if fits else _UINT8
        if inside:
            array = np.frombuffer(self._data, dtype, size // dtype.itemsize, place)
        else:
            array = np.asarray(_OwnedMemory(place, size, tensors.free)).view(dtype)
        if fits:
            array = array.reshape(known.shape)
        return Tensor(known.name, known.datatype, known.shape, array)


class KnownTensor(msgspec.Struct, frozen=True, gc=False):
    """Name and layout of an output. `nbytes` is -1 if the size may vary."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: Any
    nbytes: int

    @classmethod
    def of(cls, name: str, datatype: int, shape: tuple[int, ...]) -> KnownTensor:
        """Return the layout of a tensor, whose data type is given by its number."""
        size = _ITEMSIZES[datatype] * prod(shape) if _ITEMSIZES[datatype] else -1
        return cls(name, DATATYPES[datatype], shape, _DTYPES[datatype], size)


class KnownTensors:
    """The outputs that the library knows by number; for one thread."""

    def __init__(self, library: Any) -> None:
        self.free: Callable[[int], None] = library.free
        self._read = library.tensor
        self._known: dict[int, KnownTensor] = {}

    def get(self, number: int) -> KnownTensor:
        """Return the tensor with a number."""
        known = self._known.get(number)
        if known is None:
            buffers = Buffers(64, 1024)
            count = buffers.call(self._read, number)
            words, data = buffers.content(count, int(buffers.words[0]))
            known = self._known[number] = KnownTensor.of(*Reader(words, data, 1).spec())
        return known


class _OwnedMemory:
    """Memory of the library, freed with the last view of it."""

    def __init__(self, address: int, size: int, free: Callable[[int], None]) -> None:
        self._address = address
        self._free = free
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)
        }  # fmt: skip

    def __del__(self) -> None:
        self._free(self._address)
