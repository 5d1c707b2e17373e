"""Whether a model is wholly uploaded. Pure: what was seen, and when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from tritonpy_repo_cloud.remote_file import RemoteFile


class Completeness(Protocol):
    """A rule by which models are taken for whole."""

    def wants(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        """Return what is missing of the model as it is seen at `now` (in seconds), in words; empty where it is whole."""

    def vouch(self, name: str, files: Sequence[RemoteFile]) -> None:
        """Take note that the model was whole with these files."""

    def keep(self, names: Collection[str]) -> None:
        """Forget all other models."""


class Stable:
    """A model is whole when it looks as it did `settle_s` ago."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._since: dict[str, tuple[object, float]] = {}

    def wants(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        look = _look(files)
        seen, since = self._since.get(name, (None, now))
        if seen != look:
            since = now
            self._since[name] = look, since
        return "" if now - since >= self._settle_s else f"its files changed less than {self._settle_s:g} s ago"

    def vouch(self, name: str, files: Sequence[RemoteFile]) -> None:
        self._since[name] = _look(files), float("-inf")

    def keep(self, names: Collection[str]) -> None:
        self._since = {name: seen for name, seen in self._since.items() if name in names}


class Marked:
    """A model is whole when its marker file is there, none of its files is newer, where the store tells times, and none went without a new marker."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._whole: dict[str, tuple[RemoteFile, frozenset[str]]] = {}

    def wants(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        path = f"{name}/{self._marker}"
        marker = next((file for file in files if file.path == path), None)
        if marker is None:
            return f"its marker file '{self._marker}' is not there"
        newer = [file.path for file in files if _newer(file, marker)]
        if newer:
            return f"'{newer[0]}' is newer than its marker file '{self._marker}'"
        paths = frozenset(file.path for file in files)
        before, known = self._whole.get(name, (None, paths))
        if before == marker and known - paths:
            return f"'{min(known - paths)}' is gone, and its marker file '{self._marker}' is the same"
        self._whole[name] = marker, paths
        return ""

    def vouch(self, name: str, files: Sequence[RemoteFile]) -> None:
        pass

    def keep(self, names: Collection[str]) -> None:
        self._whole = {name: seen for name, seen in self._whole.items() if name in names}


def _look(files: Sequence[RemoteFile]) -> object:
    return tuple((file.path, file.version) for file in files)


def _newer(file: RemoteFile, marker: RemoteFile) -> bool:
    return file.modified is not None and marker.modified is not None and file.modified > marker.modified
