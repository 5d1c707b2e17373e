"""Names and versions of models: said once, then named by a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy.ipc import ProtocolError

_MOST = 4096  # clients may ask for any number of models that there are not


class WrittenHeads:
    """The heads that this end has announced."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._news: list[tuple[int, str, int]] = []

    def begin(self) -> None:
        """Start a frame: the only moment when numbers may be given to others, which the other end learns with it."""
        if len(self._numbers) >= _MOST:
            self._numbers.clear()
            self._news.clear()

    def number(self, model: str, version: int) -> int:
        """Return the number of a head."""
        key = model, version
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._news.append((number, model, version))
        return number

    def news(self) -> dict[str, Any]:
        """Return what the other end must learn with this frame; the same again until it is `announced`."""
        return {"heads": self._news} if self._news else {}

    def announced(self) -> None:
        """Take note that the news are on their way."""
        self._news = []


class KnownHeads:
    """The heads that the other end has announced."""

    def __init__(self) -> None:
        self._heads: dict[int, tuple[str, int]] = {}

    def learn(self, extras: Mapping[str, Any]) -> None:
        """Take the news of a frame. Raises ProtocolError."""
        try:
            self._heads.update({number: (model, version) for number, model, version in extras.get("heads", ())})
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"a head is broken: {error}") from error

    def get(self, number: int) -> tuple[str, int]:
        """Return model and version. Raises ProtocolError for a number that was not announced."""
        try:
            return self._heads[number]
        except KeyError:
            raise ProtocolError(f"head {number} was never announced") from None
