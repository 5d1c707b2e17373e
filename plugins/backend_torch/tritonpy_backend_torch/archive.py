"""What a model's file is, by its content: PyTorch saves five different things under two endings. Pure."""

from __future__ import annotations

import enum
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonpy import InvalidArgument


class Form(enum.Enum):
    """The forms in which PyTorch models are saved."""

    TORCHSCRIPT = "a TorchScript model"
    EXPORTED = "a program of torch.export"
    AOTI = "an AOTInductor package"
    PICKLE = "a pickle of torch.save"
    PYTHON = "a Python file"


_PICKLE_START = b"\x80"
_ZIP_START = b"PK"
OLD_PROGRAM = "serialized_exported_program.json"  # of torch.export up to 2.7


class Records:
    """The records of an open archive, by their names without the folder that holds them all."""

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
        """Return the content of a record; raises KeyError."""
        return self._archive.read(self._entries[name])

    def size(self, name: str) -> int:
        """Return the number of bytes of a record; raises KeyError."""
        return self._archive.getinfo(self._entries[name]).file_size


@contextmanager
def records(path: Path) -> Iterator[Records]:
    """Give the records of the archive at `path`; raises InvalidArgument where they cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield Records(archive)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise InvalidArgument(f"'{path}' is damaged or was not written to its end: {error}") from error


def form_of(path: Path) -> Form:
    """Return what the file at `path` is; raises InvalidArgument for what PyTorch did not write, or not whole."""
    if path.suffix == ".py":
        return Form.PYTHON
    with path.open("rb") as file:
        start = file.read(2)
    if start[:1] == _PICKLE_START:
        return Form.PICKLE
    if start != _ZIP_START:
        raise InvalidArgument(f"'{path}' is no PyTorch model: it is neither an archive nor a pickle of PyTorch")
    with records(path) as found:
        form = _form_of_archive(found)
    if form is None:
        raise InvalidArgument(f"'{path}' is an archive, but not one of a PyTorch model")
    return form


def _form_of_archive(found: Records) -> Form | None:
    if found.below("data/aotinductor/"):
        return Form.AOTI
    if (found.below("models/") and "archive_format" in found) or OLD_PROGRAM in found:
        return Form.EXPORTED
    if "constants.pkl" in found and found.below("code/"):
        return Form.TORCHSCRIPT
    return Form.PICKLE if "data.pkl" in found else None
