"""The file in which routes survive a restart."""

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


class KeptCanary(msgspec.Struct, frozen=True):
    """How far a canary had come."""

    state: CanaryState
    step: Annotated[int, Meta(ge=0)]
    reason: str = ""


class KeptRoute(msgspec.Struct, frozen=True):
    """A route as it was: `configured` is what server.yaml said of it then, `spec` what it became; None is no route."""

    spec: RouteSpec | None
    configured: RouteSpec | None = None
    canary: KeptCanary | None = None


class Kept(msgspec.Struct, frozen=True):
    """The content of the file. Revisions go on behind `revision`."""

    revision: int = 0
    routes: dict[str, KeptRoute] = {}
    format: int = FORMAT


class StateFile:
    """Written whole or not at all; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def load(self) -> Kept:
        """Return what was kept, nothing where there is no file yet. Raises StartupError for one that cannot be read, or has no folder."""
        if self._path is None:
            return Kept()
        if not self._path.parent.is_dir():
            raise StartupError(
                f"the routes cannot be kept in {self._path}: there is no folder {self._path.parent.absolute()}"
            )
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=Kept)
        except FileNotFoundError:
            return Kept()
        except (OSError, msgspec.DecodeError) as error:
            raise self._unreadable(str(error)) from error
        if kept.format != FORMAT:
            raise self._unreadable(f"it has format {kept.format}, this server reads {FORMAT}")
        problems = [
            f"routes.{name}.{text}"
            for name, route in kept.routes.items()
            if route.spec
            for text in route.spec.problems()
        ]
        if problems:
            raise self._unreadable("; ".join(problems))
        return kept

    def _unreadable(self, why: str) -> StartupError:
        return StartupError(
            f"the routes of {self._path} cannot be read: {why}. Repair the file, or remove it to begin with those of server.yaml."
        )

    def save(self, kept: Kept) -> None:
        """Keep it; on return it is on the disk. Raises Internal."""
        if self._path is None:
            return
        data: Any = msgspec.json.format(msgspec.json.encode(kept))
        try:
            self._write(data)
        except OSError as error:
            raise Internal(
                f"the routes are changed, but they cannot be kept in {self._path} for the next start: {error}"
            ) from error

    def _write(self, data: bytes) -> None:
        assert self._path is not None  # noqa: S101  who calls has seen it
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
