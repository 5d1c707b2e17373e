"""Pure rules that decide whether a model is completely uploaded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from tritonpy_repo_cloud.remote_file import RemoteFile


class CompletenessRule(Protocol):
    """A rule that decides whether a model is complete."""

    def incomplete_reason(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        """Return why the model is incomplete, or "" if it is complete.

        `now` is in seconds.
        """

    def mark_complete(self, name: str, files: Sequence[RemoteFile]) -> None:
        """Record that the model was complete with these files."""

    def retain(self, names: Collection[str]) -> None:
        """Forget all other models."""


class StabilityRule:
    """A model is complete when its files have not changed for `settle_s` seconds."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._since: dict[str, tuple[object, float]] = {}

    def incomplete_reason(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        look = _snapshot(files)
        seen, since = self._since.get(name, (None, now))
        if seen != look:
            since = now
            self._since[name] = look, since
        return (
            ""
            if now - since >= self._settle_s
            else f"its files changed less than {self._settle_s:g} s ago"
        )

    def mark_complete(self, name: str, files: Sequence[RemoteFile]) -> None:
        self._since[name] = _snapshot(files), float("-inf")

    def retain(self, names: Collection[str]) -> None:
        self._since = {name: seen for name, seen in self._since.items() if name in names}


class MarkerRule:
    """A model is complete when its marker file exists and matches its files.

    No file may be newer than the marker, if the store reports times, and no file may disappear
    while the marker stays the same.
    """

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._complete: dict[str, tuple[RemoteFile, frozenset[str]]] = {}

    def incomplete_reason(self, name: str, files: Sequence[RemoteFile], now: float) -> str:
        path = f"{name}/{self._marker}"
        marker = next((file for file in files if file.path == path), None)
        if marker is None:
            return f"its marker file '{self._marker}' does not exist"
        newer = [file.path for file in files if _newer(file, marker)]
        if newer:
            return f"'{newer[0]}' is newer than its marker file '{self._marker}'"
        paths = frozenset(file.path for file in files)
        before, known = self._complete.get(name, (None, paths))
        if before == marker and known - paths:
            return (
                f"'{min(known - paths)}' was removed, but its marker file '{self._marker}' is "
                "unchanged"
            )
        self._complete[name] = marker, paths
        return ""

    def mark_complete(self, name: str, files: Sequence[RemoteFile]) -> None:
        pass

    def retain(self, names: Collection[str]) -> None:
        self._complete = {name: seen for name, seen in self._complete.items() if name in names}


def _snapshot(files: Sequence[RemoteFile]) -> object:
    return tuple((file.path, file.version) for file in files)


def _newer(file: RemoteFile, marker: RemoteFile) -> bool:
    return (
        file.modified is not None
        and marker.modified is not None
        and file.modified > marker.modified
    )
