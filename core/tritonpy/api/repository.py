"""The interface of a model repository."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options


@dataclass(frozen=True, slots=True)
class ModelListing:
    """One model in a repository.

    `fingerprint` differs whenever a file of the model differs (content, name or time); `files` maps each file's relative path to its own
    fingerprint, so that a change can be named. `path` is the local folder where there is one already.
    """

    name: str
    fingerprint: str
    files: Mapping[str, str]
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """`url` as configured; `cache` is a folder that the repository may fill."""

    url: str
    cache: Path


class Repository(ABC):
    """A place that holds models, found by the scheme of its URL. `scan` is the one required method.

    Calls come from the loading threads, one at a time per model.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, context: RepositoryContext) -> None:
        self.options = options
        self.context = context

    @abstractmethod
    def scan(self) -> Mapping[str, ModelListing]:
        """List the models by name; raise Unavailable where the repository cannot be read now."""

    def find(self, name: str) -> ModelListing | None:
        """Return the listing of one model, None where there is none; raise as `scan` does (optional: to be quicker than a scan)."""
        return self.scan().get(name)

    def names(self) -> Collection[str]:
        """Return the names of all models; raise as `scan` does (optional: to be quicker than a scan)."""
        return self.scan().keys()

    def localize(self, listing: ModelListing) -> Path:
        """Return a local folder with the model's files; it must not change until `release`."""
        if listing.path is None:
            raise NotImplementedError(f"{type(self).__name__} must define localize()")
        return listing.path

    def release(self, path: Path) -> None:
        """Take note that the folder of `localize` is no longer used (optional)."""

    def close(self) -> None:
        """Free connections (optional)."""
