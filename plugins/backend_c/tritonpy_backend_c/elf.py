"""What a library needs and exports, read from its file without loading it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tritonpy import InvalidArgument

PREFIXES = ("TRITONBACKEND_", "TRITONSERVER_", "TRITONREPOAGENT_", "TRITONCACHE_")
HOST_NAME = "libtritonserver"


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """The dynamic section of a shared library.

    `needed` are the names of libraries that it loads, `search_path` where it looks for them.
    `undefined` and `defined` are its symbols of Triton's interfaces.
    """

    path: Path
    machine: str
    needed: tuple[str, ...]
    search_path: tuple[str, ...]
    undefined: tuple[str, ...]
    defined: tuple[str, ...]

    @property
    def host_names(self) -> list[str]:
        """The names under which it expects the server's own library."""
        return [name for name in self.needed if name.startswith(HOST_NAME)]


def read_library(path: Path) -> LibraryFile:
    """Return what the file says. Raises `InvalidArgument` if it is no shared library."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            needed, search_path = _dynamic(elf)
            undefined, defined = _symbols(elf)
            return LibraryFile(
                path, elf.get_machine_arch(), needed, search_path, undefined, defined
            )
    except (OSError, ELFError) as error:
        raise InvalidArgument(f"'{path}' is no shared library: {error}") from error


def _dynamic(elf: ELFFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    needed: list[str] = []
    search_path: list[str] = []
    for section in elf.iter_sections():
        if not isinstance(section, DynamicSection):
            continue
        tags: Iterator[Any] = section.iter_tags()  # its attributes depend on the tag
        for tag in tags:
            if tag.entry.d_tag == "DT_NEEDED":
                needed.append(tag.needed)
            elif tag.entry.d_tag in {"DT_RPATH", "DT_RUNPATH"}:
                text = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                search_path += text.split(":")
    return tuple(needed), tuple(search_path)


def _symbols(elf: ELFFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    undefined: list[str] = []
    defined: list[str] = []
    table = elf.get_section_by_name(".dynsym")
    if isinstance(table, SymbolTableSection):
        for symbol in table.iter_symbols():
            if symbol.name.startswith(PREFIXES):
                missing = symbol.entry.st_shndx == "SHN_UNDEF"
                (undefined if missing else defined).append(symbol.name)
    return tuple(sorted(undefined)), tuple(sorted(defined))
