"""Other names of the server's library.

Some tools for wheels rename the libraries that they bundle. A backend from such a wheel asks the
loader for `libtritonserver-717102f0.so`, say. The loader takes a library that is loaded under that
name, so an empty library with it is enough: the functions are found in the library that is loaded
for all.
"""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
import threading
from pathlib import Path

from tritonpy_backend_c.elf import LibraryFile

_OWN_NAME = "libtritonserver.so"
_loaded = {_OWN_NAME}
_lock = threading.Lock()


def provide_names(library: LibraryFile) -> None:
    """Load an empty library under each name by which `library` expects the server's."""
    with _lock:
        for name in library.host_names:
            if name not in _loaded:
                _load_empty(name)
                _loaded.add(name)


def _load_empty(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="tritonpy-") as folder:
        path = Path(folder) / name
        path.write_bytes(empty_library(name))
        ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_LOCAL)


def empty_library(name: str) -> bytes:
    """Return an ELF file of a shared library without symbols, whose name (SONAME) is `name`.

    It is for 64-bit little-endian machines and has one loadable segment with a dynamic section, a
    string table, a symbol table with the null symbol and a hash table with one empty chain.
    """
    header, program = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
    strings = b"\0" + name.encode() + b"\0"
    symbols = bytes(24)
    hashes = struct.pack("<IIII", 1, 1, 0, 0)
    at = header.size + 3 * program.size
    symbols_at, hashes_at = at, at + len(symbols)
    strings_at = hashes_at + len(hashes)
    dynamic_at = (strings_at + len(strings) + 15) // 16 * 16
    soname, strtab, symtab, hash_, strsz, syment, null = 14, 5, 6, 4, 10, 11, 0
    dynamic = b"".join(
        struct.pack("<qQ", tag, value)
        for tag, value in [
            (soname, 1),
            (hash_, hashes_at),
            (strtab, strings_at),
            (symtab, symbols_at),
            (strsz, len(strings)),
            (syment, 24),
            (null, 0),
        ]
    )
    size = dynamic_at + len(dynamic)
    machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    load, dynamic_type, stack, read, write = 1, 2, 0x6474E551, 4, 2
    return b"".join(
        [
            header.pack(
                identity, 3, machine, 1, 0, header.size, 0, 0, header.size, program.size, 3, 0, 0, 0
            ),
            # Writable, because the loader relocates the dynamic section in place.
            program.pack(load, read | write, 0, 0, 0, size, size, 0x1000),
            program.pack(
                dynamic_type, read | write, dynamic_at, dynamic_at, dynamic_at,
                len(dynamic), len(dynamic), 8,
            ),
            # Without it the loader would make the stack executable.
            program.pack(stack, read | write, 0, 0, 0, 0, 0, 16),
            symbols,
            hashes,
            strings.ljust(dynamic_at - strings_at, b"\0"),
            dynamic,
        ]
    )  # fmt: skip
