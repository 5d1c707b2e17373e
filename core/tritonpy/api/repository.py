"""The interface of model repositories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tritonpy_config.options import NoOptions, Options
from tritonpy_types.errors import InvalidArgument, Unavailable


class ModelChanged(Unavailable):
    """Raised if the files of a model differ from those of its listing; look the model up again."""


@dataclass(frozen=True, slots=True)
class ModelListing:
    """One model in a repository.

    `fingerprint` changes whenever a file of the model changes (content, name or time). `files`
    maps the relative path of each file to its own fingerprint, so that a change can be described.
    `path` is the local folder if it exists already. With `renamed`, `name` replaces the name in the
    configuration.
    """

    name: str
    fingerprint: str
    files: Mapping[str, str]
    path: Path | None = None
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """The environment of a repository.

    `url` is the configured URL. `cache` is a folder that the repository may fill. It outlives the
    server, and all servers of this user share it.
    """

    url: str
    cache: Path


class Repository(ABC):
    """A store of models, selected by the scheme of its URL. `scan` is the one required method.

    The loading threads make the calls, one at a time per model. A model that is only partly
    present, such as during an upload, is omitted, or listed in its previous state. `find` raises
    Unavailable with the reason for it.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, context: RepositoryContext) -> None:
        self.options = options
        self.context = context

    @abstractmethod
    def scan(self) -> Mapping[str, ModelListing]:
        """Return the models by name. Raises Unavailable if the repository cannot be read now."""

    def find(self, name: str) -> ModelListing | None:
        """Return the listing of one model or None; raises as `scan` does (optional, for speed)."""
        return self.scan().get(name)

    def names(self) -> Collection[str]:
        """Return the names of all models; raises as `scan` does (optional, for speed)."""
        return self.scan().keys()

    def peek(self, listing: ModelListing, path: str) -> bytes | None:
        """Return the content of one small file of `listing` without fetching others (optional).

        None if it cannot be read now.
        """
        if listing.path is None:
            return None
        try:
            return (listing.path / path).read_bytes()
        except OSError:
            return None

    def localize(self, listing: ModelListing) -> Path:
        """Return a local folder with the files of `listing` that is not modified until `release`.

        Each call has its own `release`. Several calls may return the same folder. Raises
        ModelChanged if the files changed meanwhile and Unavailable if they cannot be fetched. After
        an error there is nothing to release.
        """
        if listing.path is None:
            raise NotImplementedError(f"{type(self).__name__} must define localize()")
        return listing.path

    def release(self, path: Path) -> None:
        """Release the folder that `localize` returned (optional)."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when models may have changed, from any thread until `close` (optional).

        It makes changes visible before the next poll.
        """

    def interrupt(self) -> None:
        """Make waiting and later calls raise Unavailable: the server stops (optional)."""

    def close(self) -> None:
        """Close connections (optional)."""


_HIGHEST = 2**63 - 1


def named_versions(text: str) -> list[int]:
    """Return the sorted versions in `text`: one number or several, such as "3" or "1,3".

    Raises InvalidArgument for any other text.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(
        part.isascii() and part.isdigit() and 0 < int(part[:20]) <= _HIGHEST for part in parts
    ):
        raise InvalidArgument(
            "parameter 'versions' must be version numbers with commas between them, "
            f"such as '3' or '1,3', got '{text}'"
        )
    return sorted({int(part) for part in parts})
