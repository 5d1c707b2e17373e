"""Numeric ids for model names and versions: announced once, then used in frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy_ipc import ProtocolError

_MAX_IDS = 4096  # bounds the memory that requests for unknown models use


class ModelIdEncoder:
    """The ids that this end has announced."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._unannounced: list[tuple[int, str, int]] = []

    def begin(self) -> None:
        """Start a frame. Ids are only reassigned here; the frame then announces the new ones."""
        if len(self._numbers) >= _MAX_IDS:
            self._numbers.clear()
            self._unannounced.clear()

    def number(self, model: str, version: int) -> int:
        """Return the id of a model and version."""
        key = model, version
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._unannounced.append((number, model, version))
        return number

    def new_ids(self) -> dict[str, Any]:
        """Return extras that announce the new ids: in every frame until `announced` is called."""
        return {"model_ids": self._unannounced} if self._unannounced else {}

    def announced(self) -> None:
        """Record that the new ids were sent."""
        self._unannounced = []


class ModelIdDecoder:
    """The ids that the other end has announced."""

    def __init__(self) -> None:
        self._model_ids: dict[int, tuple[str, int]] = {}

    def learn(self, extras: Mapping[str, Any]) -> None:
        """Add the ids that a frame announces. Raises ProtocolError."""
        try:
            self._model_ids.update(
                {number: (model, version) for number, model, version in extras.get("model_ids", ())}
            )
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"a model id is malformed: {error}") from error

    def get(self, number: int) -> tuple[str, int]:
        """Return model name and version. Raises ProtocolError for an unknown id."""
        try:
            return self._model_ids[number]
        except KeyError:
            raise ProtocolError(f"model id {number} was never announced") from None
