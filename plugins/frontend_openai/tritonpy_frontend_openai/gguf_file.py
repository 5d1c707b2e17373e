"""The metadata of GGUF files: the chat template and the vocabulary of a model for llama.cpp.

Source: `docs/gguf.md` of ggml, versions 2 and 3.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

VOCABULARY = "tokenizer.ggml.tokens"
_MAGIC = b"GGUF"
_VERSIONS = {2, 3}
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_MAX_ENTRIES = 1_000_000


class GgufFault(ValueError):
    """A file is no GGUF file, or it is damaged."""


def first_gguf_file(folder: Path) -> Path | None:
    """Return the first GGUF file in a folder, None if there is none."""
    return min(folder.glob("*.gguf"), default=None) if folder.is_dir() else None


def read_gguf_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a file: numbers, texts, and the vocabulary; no other arrays.

    Raises GgufFault, and OSError if the file cannot be read.
    """
    with path.open("rb") as file:
        if path.stat().st_size < len(_MAGIC):
            raise GgufFault("the file is too short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).metadata()
            except (struct.error, UnicodeDecodeError, IndexError) as error:
                raise GgufFault(f"the file is damaged: {error}") from error


class _Reader:
    """Reads values one after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def metadata(self) -> dict[str, Any]:
        if self._bytes(len(_MAGIC)) != _MAGIC:
            raise GgufFault("the file is no GGUF file")
        version = self._number("I")
        if version not in _VERSIONS:
            raise GgufFault(f"version {version} of GGUF is not supported")
        self._number("Q")  # the number of tensors
        found = {}
        for _ in range(self._count()):
            key, kind = self._string(), self._number("I")
            if kind == _ARRAY:
                values = self._array(keeps=key == VOCABULARY)
                if values is not None:
                    found[key] = values
            else:
                found[key] = self._value(kind)
        return found

    def _array(self, *, keeps: bool) -> list[Any] | None:
        """Return the texts of an array, or skip it."""
        kind, count = self._number("I"), self._count()
        if kind == _STRING:
            texts = [self._skipped_string() for _ in range(count)]
            return [text.decode("utf-8", "replace") for text in texts] if keeps else None
        if kind not in _NUMBERS:
            raise GgufFault(f"the file has an array of an unknown type: {kind}")
        self._bytes(count * struct.calcsize("<" + _NUMBERS[kind]))
        return None

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind not in _NUMBERS:
            raise GgufFault(f"the file has a value of an unknown type: {kind}")
        return self._number(_NUMBERS[kind])

    def _string(self) -> str:
        return self._skipped_string().decode("utf-8")

    def _skipped_string(self) -> bytes:
        return self._bytes(self._number("Q"))

    def _count(self) -> int:
        count: int = self._number("Q")
        if count > _MAX_ENTRIES:
            raise GgufFault(f"the file claims to have {count} entries")
        return count

    def _number(self, form: str) -> Any:
        size = struct.calcsize("<" + form)
        return struct.unpack("<" + form, self._bytes(size))[0]

    def _bytes(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError(f"{size} bytes are missing at {self._at}")
        found = self._data[self._at : end]
        self._at = end
        return found
