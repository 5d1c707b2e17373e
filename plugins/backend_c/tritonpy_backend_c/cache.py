"""A response cache that was written for Triton's C interface: `libtritoncache_NAME.so`.

A response is stored as one buffer in Triton's layout, so that a size which is configured for Triton
holds as many responses here: the number of outputs (32 bits); for each the number of the bytes that
follow (64 bits), name, data type and shape, each after its length in bytes (32 bits), and the data
after its length (64 bits). Numbers are in the order of the machine.
"""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from tritonpy import DTYPES, Cache, Options, Tensor, TritonError
from tritonpy.metrics import SERVER_METRICS, CustomMetrics, FamilySnapshot, ModelMetrics
from tritonpy_backend_c.alias import provide_names
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.host import host
from tritonpy_backend_c.library import check
from tritonpy_backend_c.options import LibraryCacheOptions

log = logging.getLogger("tritonpy.cache")

_NOT_FOUND, _ALREADY_EXISTS = 2, 6  # TRITONSERVER_Error_Code
_RESERVED = frozenset(
    name for name in SERVER_METRICS if not name.startswith("nv_cache_") or "_per_model" in name
)
"""The metrics of the server that are not those of its cache."""


class LibraryCache(Cache):
    """Calls the library from the server's cache threads, because it may wait for a network.

    The library runs in the server: a crash of it ends the server. It is never unloaded.
    """

    Options: ClassVar[type[Options]] = LibraryCacheOptions
    blocking: ClassVar[bool] = True

    def __init__(self, options: LibraryCacheOptions) -> None:
        super().__init__(options)
        self.threads, self.deadline_ms = options.threads, options.deadline_ms
        found = read_library(Path(options.library))
        self._metrics = CustomMetrics(_RESERVED)
        self._library = host().library
        self._owner = host().add_owner(ModelMetrics(self._metrics))
        self._handle = ctypes.c_void_p()
        provide_names(found)
        log.info("response cache of %s, with %d settings", found.path, len(options.settings))
        try:
            check(
                self._library,
                self._library.cache_open(
                    options.library.encode(), msgspec.json.encode(dict(options.settings)),
                    self._owner, ctypes.byref(self._handle),
                ),
            )  # fmt: skip
        except TritonError as error:
            host().remove_model(self._owner)
            raise ValueError(f"{options.library}: {error.message}") from error

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        memory, size = ctypes.c_void_p(), ctypes.c_int64()
        code = self._library.cache_lookup(
            self._handle, key.hex().encode(), ctypes.byref(memory), ctypes.byref(size)
        )
        if code == _NOT_FOUND:
            return None
        check(self._library, code)
        try:
            return unpack(ctypes.string_at(memory, size.value))
        finally:
            self._library.free(memory)

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        headers, arrays = pack(outputs)
        words = [2 * len(arrays)]
        for header, array in zip(headers, arrays, strict=True):
            for part in (np.frombuffer(header, np.uint8), array):
                words += (part.ctypes.data, part.nbytes)
        code = self._library.cache_insert(
            self._handle, key.hex().encode(), struct.pack(f"{len(words)}q", *words)
        )
        if code != _ALREADY_EXISTS:  # another request with the same key was faster
            check(self._library, code)

    def metrics(self) -> Sequence[FamilySnapshot]:
        return self._metrics.snapshot()

    def close(self) -> None:
        try:
            check(self._library, self._library.cache_close(self._handle))
        finally:
            host().remove_model(self._owner)


def pack(outputs: Sequence[Tensor]) -> tuple[list[bytes], list[np.ndarray]]:
    """Return, for each output, the bytes before its data and its data."""
    headers, arrays = [], []
    for tensor in outputs:
        array = np.ascontiguousarray(tensor.data)
        shape = struct.pack(f"{len(tensor.shape)}q", *tensor.shape)
        fields = [
            struct.pack("I", len(field)) + field
            for field in (tensor.name.encode(), tensor.datatype.encode(), shape)
        ]
        header = b"".join(fields) + struct.pack("Q", array.nbytes)
        headers.append(struct.pack("Q", len(header) + array.nbytes) + header)
        arrays.append(array)
    headers[0] = struct.pack("I", len(outputs)) + headers[0]
    return headers, arrays


def unpack(data: bytes) -> list[Tensor]:
    """Return the outputs in `data`. Raises `ValueError` or `struct.error` for other data."""
    (count,) = struct.unpack_from("I", data)
    at, outputs = 4, []
    for _ in range(count):
        at += 8  # the size of the whole output
        fields = []
        for _ in range(3):
            (length,) = struct.unpack_from("I", data, at)
            fields.append(data[at + 4 : at + 4 + length])
            at += 4 + length
        (size,) = struct.unpack_from("Q", data, at)
        at += 8
        name, datatype = fields[0].decode(), fields[1].decode()
        shape = struct.unpack(f"{len(fields[2]) // 8}q", fields[2])
        dtype = np.dtype(np.uint8) if datatype == "BYTES" else DTYPES[datatype]
        array = np.frombuffer(data, dtype, size // dtype.itemsize, at).copy()
        array.flags.writeable = False
        at += size
        if datatype != "BYTES":
            array = array.reshape(shape)
        outputs.append(Tensor(name, datatype, shape, array))
    return outputs
