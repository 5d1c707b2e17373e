"""The questions that are put to a server beside the load; one class per protocol answers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy import StartupError
from tritonpy_bench.target.facts import ServerFacts

Plain = Mapping[str, Any]
TIMEOUT_S = 10.0


class Refused(StartupError):
    """The server answered, and the answer is an error; `missing` says that it does not know the operation or the model."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class Control(ABC):
    """A connection for questions; every method blocks, and raises Refused, or StartupError where nobody answers.

    Answers are plain data in the form of the HTTP protocol.
    """

    @abstractmethod
    def server(self) -> ServerFacts:
        """Return what the server says of itself."""

    @abstractmethod
    def metadata(self, model: str, version: str) -> Plain:
        """Return a model's metadata."""

    @abstractmethod
    def config(self, model: str, version: str) -> Plain:
        """Return a model's configuration."""

    @abstractmethod
    def statistics(self, model: str, version: str) -> Sequence[Plain]:
        """Return a model's statistics, one entry per version."""

    @abstractmethod
    def register(self, region: str, key: str, byte_size: int) -> None:
        """Register system shared memory."""

    @abstractmethod
    def unregister(self, region: str) -> None:
        """Take a region's registration back."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""
