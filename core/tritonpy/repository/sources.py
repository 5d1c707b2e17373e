"""Which repository holds which model, when there are several."""

from __future__ import annotations

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
