"""The command `tritonpy check-backend`."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tritonpy import Command, InvalidArgument
from tritonpy_backend_c.elf import HOST_NAME, LibraryFile, read_library
from tritonpy_backend_c.library import library_path, load_library

_FAILED, _USAGE = 1, 2
_EXECUTE = "TRITONBACKEND_ModelInstanceExecute"


class CheckBackendCommand(Command):
    """Check whether a backend in C can be served, without loading it.

        tritonpy check-backend libtriton_mine.so

    It lists the functions that the library needs, those that are missing, and the libraries that
    the loader will not find. The exit status is 0, 1 if the backend cannot be served, and 2 for an
    invalid command line.
    """

    usage_status: ClassVar[int] = _USAGE

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the file."""
        parser.add_argument("file", type=Path, metavar="FILE", help="a libtriton_NAME.so")

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the report and return the exit status."""
        try:
            found = read_library(arguments.file)
        except InvalidArgument as error:
            sys.stderr.write(f"{error.message}\n")
            return _USAGE
        problems = list(_problems(found))
        lines = [
            f"{found.path}: {found.machine}, {len(found.undefined)} functions of the server",
            f"  it defines: {', '.join(found.defined) or 'nothing of the interface'}",
            f"  it loads: {', '.join(found.needed) or 'no library'}",
            *(f"  {problem}" for problem in problems),
            "it cannot be served" if problems else "it can be served",
        ]
        sys.stdout.write("\n".join([*lines, ""]))
        return _FAILED if problems else 0


def _problems(found: LibraryFile) -> Iterator[str]:
    if _EXECUTE not in found.defined:
        yield f"{_EXECUTE} is missing: it is no backend"
    if found.machine != read_library(library_path()).machine:
        yield f"it is for another machine: {found.machine}"
    known = read_library(library_path()).defined
    unsupported = load_library().unsupported().decode().split()
    for name in found.undefined:
        if name not in known:
            yield f"{name} does not exist: the library needs a newer interface"
        elif name in unsupported:
            yield f"{name} is not supported: calls return an error"
    for name in found.needed:
        if not name.startswith(HOST_NAME) and not _is_found(found, name):
            yield (
                f"{name} is not found: add its folder to LD_LIBRARY_PATH, in server.yaml under "
                "backends.NAME.environment"
            )


def _is_found(found: LibraryFile, name: str) -> bool:
    origin = str(found.path.resolve().parent)
    folders = [each.replace("$ORIGIN", origin) for each in found.search_path]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if any(folder and (Path(folder) / name).is_file() for folder in folders):
        return True
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
