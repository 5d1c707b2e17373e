"""The interface of a model repository."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.errors import Unavailable


class ModelChanged(Unavailable):
    """The files of a model are no longer those of its listing: who wants it looks it up again."""


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
    """`url` as configured; `cache` is a folder that the repository may fill, which outlives the server and belongs to all servers of this user."""

    url: str
    cache: Path


class Repository(ABC):
    """A place that holds models, found by the scheme of its URL. `scan` is the one required method.

    Calls come from the loading threads, one at a time per model. A model that is only half there, such as one that is being uploaded, is not
    listed, or as it was before; `find` raises Unavailable for it and says why.
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

    def peek(self, listing: ModelListing, path: str) -> bytes | None:
        """Return the content of one small file of `listing`, and bring no other one; None where it cannot be had now (optional)."""
        if listing.path is None:
            return None
        try:
            return (listing.path / path).read_bytes()
        except OSError:
            return None

    def localize(self, listing: ModelListing) -> Path:
        """Return a local folder with the files of `listing`; it must not change until `release`, and nobody may write into it.

        Each call is followed by its own `release`, and the same folder may be returned to several. Raises ModelChanged where the files are others
        by now, Unavailable where they cannot be had; then nothing of them is left to be released.
        """
        if listing.path is None:
            raise NotImplementedError(f"{type(self).__name__} must define localize()")
        return listing.path

    def release(self, path: Path) -> None:
        """Take note that the folder of `localize` is no longer used (optional)."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed`, from any thread and until `close`, when models may have changed (optional: to be quicker than the next poll)."""

    def interrupt(self) -> None:
        """Let the calls that wait now, and later ones, raise Unavailable soon: the server stops (optional)."""

    def close(self) -> None:
        """Free connections (optional)."""
