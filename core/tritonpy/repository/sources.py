"""Which repository holds which model, when there are several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tritonpy.api.repository import ModelListing, Repository

DUPLICATE = "model appears in two or more repositories"


@dataclass(frozen=True, slots=True)
class Found:
    """A model and the repository that holds it."""

    repository: Repository
    listing: ModelListing


@dataclass(frozen=True, slots=True)
class Scan:
    """What all repositories hold: the models that can be loaded, and the names that more than one of them has."""

    models: Mapping[str, Found] = field(default_factory=dict)
    duplicates: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Every name, sorted."""
        return sorted({*self.models, *self.duplicates})


def look_up(repositories: Sequence[Repository], name: str) -> Scan:
    """Return what all repositories hold of one model: no other model's files are looked at. Raises as `scan` does."""
    found = [
        Found(repository, listing) for repository in repositories if (listing := repository.find(name)) is not None
    ]
    if len(found) == 1:
        return Scan({name: found[0]})
    return Scan(duplicates=frozenset([name] if found else []))


def scan(repositories: Sequence[Repository]) -> Scan:
    """List all repositories. Raises Unavailable for one that cannot be read."""
    models: dict[str, Found] = {}
    duplicates: set[str] = set()
    for repository in repositories:
        for name, listing in repository.scan().items():
            if name in models:
                duplicates.add(name)
            models[name] = Found(repository, listing)
    for name in duplicates:
        del models[name]
    return Scan(models, frozenset(duplicates))


def names(repositories: Sequence[Repository]) -> Counter[str]:
    """Return every name and how many repositories have it; no model's files are looked at. Raises as `scan` does."""
    return Counter(name for repository in repositories for name in repository.names())
