"""Interface of control clients, which send a server everything other than inference requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy import StartupError
from tritonpy_load_generator.target.metadata import ServerDescription

JsonObject = Mapping[str, Any]
TIMEOUT_S = 10.0
LOAD_TIMEOUT_S = 600.0


class RequestRejected(StartupError):
    """The server responded with an error; `missing` is true for an unknown operation or model."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class ControlClient(ABC):
    """A client for control calls. Results are plain data in the form of the HTTP protocol.

    Every method blocks. It raises RequestRejected, or StartupError if the server cannot be reached.
    """

    @abstractmethod
    def server(self) -> ServerDescription:
        """Return the server's metadata."""

    @abstractmethod
    def metadata(self, model: str, version: str) -> JsonObject:
        """Return a model's metadata."""

    @abstractmethod
    def config(self, model: str, version: str) -> JsonObject:
        """Return a model's configuration."""

    @abstractmethod
    def statistics(self, model: str, version: str) -> Sequence[JsonObject]:
        """Return a model's statistics, one entry per version; those of all models for ""."""

    @abstractmethod
    def load(self, model: str, config: JsonObject | None = None) -> None:
        """Load a model, with `config` instead of the configuration in its repository."""

    @abstractmethod
    def register(self, region: str, key: str, byte_size: int) -> None:
        """Register system shared memory."""

    @abstractmethod
    def unregister(self, region: str) -> None:
        """Unregister system shared memory."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""
