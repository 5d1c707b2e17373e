"""The file that keeps routes across restarts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tritonpy import Internal, StartupError
from tritonpy_traffic.canary import CanaryState
from tritonpy_traffic.spec import RouteSpec

FORMAT = 1


class SavedCanary(msgspec.Struct, frozen=True):
    """Progress of a canary."""

    state: CanaryState
    step: Annotated[int, Meta(ge=0)]
    reason: str = ""


class SavedRoute(msgspec.Struct, frozen=True):
    """A saved route.

    `configured` is its configuration in server.yaml when it was saved. `spec` is the specification
    after run-time changes. None means that there was no such route.
    """

    spec: RouteSpec | None
    configured: RouteSpec | None = None
    canary: SavedCanary | None = None


class SavedState(msgspec.Struct, frozen=True):
    """The content of the file. `revision` is the last one used."""

    revision: int = 0
    routes: dict[str, SavedRoute] = {}
    format: int = FORMAT


class StateFile:
    """Saves and loads the routes. Writes are atomic. Without a path nothing is saved."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def load(self) -> SavedState:
        """Return the saved state, an empty one if no file exists.

        Raises `StartupError` if the file cannot be read or its folder is missing.
        """
        if self._path is None:
            return SavedState()
        if not self._path.parent.is_dir():
            raise StartupError(
                f"cannot save routes in {self._path}: missing folder {self._path.parent.absolute()}"
            )
        try:
            saved = msgspec.json.decode(self._path.read_bytes(), type=SavedState)
        except FileNotFoundError:
            return SavedState()
        except (OSError, msgspec.DecodeError) as error:
            raise self._unreadable(str(error)) from error
        if saved.format != FORMAT:
            raise self._unreadable(f"it has format {saved.format}, this server reads {FORMAT}")
        problems = [
            f"routes.{name}.{text}"
            for name, route in saved.routes.items()
            if route.spec
            for text in route.spec.problems()
        ]
        if problems:
            raise self._unreadable("; ".join(problems))
        return saved

    def _unreadable(self, reason: str) -> StartupError:
        return StartupError(
            f"cannot read routes of {self._path}: {reason}. Repair the file, "
            "or remove it to start with the routes of server.yaml."
        )

    def save(self, saved: SavedState) -> None:
        """Write the state to disk. Raises `Internal`."""
        if self._path is None:
            return
        data: Any = msgspec.json.format(msgspec.json.encode(saved))
        try:
            self._write(data)
        except OSError as error:
            raise Internal(
                f"the routes are changed, but cannot be saved in {self._path} for the next "
                f"start: {error}"
            ) from error

    def _write(self, data: bytes) -> None:
        assert self._path is not None  # noqa: S101    checked by the caller
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        except OSError:
            if part.is_file():
                part.unlink()
            raise
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
