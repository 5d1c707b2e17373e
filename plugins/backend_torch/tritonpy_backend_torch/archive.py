"""Pure detection of a model file's format, since PyTorch saves five formats under two suffixes."""

from __future__ import annotations

import enum
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonpy import InvalidArgument


class ArchiveFormat(enum.Enum):
    """The formats in which PyTorch models are saved."""

    TORCHSCRIPT = "a TorchScript model"
    EXPORTED = "a program of torch.export"
    AOTI = "an AOTInductor package"
    PICKLE = "a pickle of torch.save"
    PYTHON = "a Python file"


_PICKLE_START = b"\x80"
_ZIP_START = b"PK"
LEGACY_PROGRAM = "serialized_exported_program.json"  # of torch.export up to 2.7


class Records:
    """Records of an open archive, by name without the archive's top-level folder."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._entries: dict[str, str] = {}
        for name in archive.namelist():
            _, slash, rest = name.partition("/")
            self._entries[rest if slash else name] = name

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def below(self, folder: str) -> list[str]:
        """Return the records whose names begin with `folder`."""
        return [name for name in self._entries if name.startswith(folder)]

    def read(self, name: str) -> bytes:
        """Return the content of a record; raise `KeyError` if it does not exist."""
        return self._archive.read(self._entries[name])

    def size(self, name: str) -> int:
        """Return the size of a record in bytes; raise `KeyError` if it does not exist."""
        return self._archive.getinfo(self._entries[name]).file_size


@contextmanager
def open_records(path: Path) -> Iterator[Records]:
    """Yield the records of the archive at `path`; raise `InvalidArgument` if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield Records(archive)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise InvalidArgument(f"'{path}' is damaged or truncated: {error}") from error


def detect_format(path: Path) -> ArchiveFormat:
    """Return the format of the file at `path`.

    Raises `InvalidArgument` if PyTorch did not write it, or not completely.
    """
    if path.suffix == ".py":
        return ArchiveFormat.PYTHON
    with path.open("rb") as file:
        start = file.read(2)
    if start[:1] == _PICKLE_START:
        return ArchiveFormat.PICKLE
    if start != _ZIP_START:
        raise InvalidArgument(
            f"'{path}' is not a PyTorch model: it is neither a PyTorch archive nor a pickle"
        )
    with open_records(path) as found:
        model_format = _detect_archive_format(found)
    if model_format is None:
        raise InvalidArgument(f"'{path}' is an archive, but not of a PyTorch model")
    return model_format


def _detect_archive_format(found: Records) -> ArchiveFormat | None:
    if found.below("data/aotinductor/"):
        return ArchiveFormat.AOTI
    if (found.below("models/") and "archive_format" in found) or LEGACY_PROGRAM in found:
        return ArchiveFormat.EXPORTED
    if "constants.pkl" in found and found.below("code/"):
        return ArchiveFormat.TORCHSCRIPT
    return ArchiveFormat.PICKLE if "data.pkl" in found else None
