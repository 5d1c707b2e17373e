"""Which repository holds which model, when there are several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonpy.api.repository import ModelChanged, ModelListing, Repository
from tritonpy.config.qualified import qualified
from tritonpy.shown_urls import without_secrets

DUPLICATE = "model appears in two or more repositories"
_LOOKS = 3  # at a model whose files change while they are taken over


@dataclass(frozen=True, slots=True)
class Found:
    """A model and the repository that holds it; `namespace` is empty where the names of models are unique."""

    repository: Repository
    listing: ModelListing
    namespace: str = ""

    @property
    def key(self) -> str:
        """The model's qualified name."""
        return qualified(self.namespace, self.listing.name)

    def localize(self) -> tuple[Found, Path]:
        """Return a local folder with the model's files, and the model as it is there: one that changes meanwhile is looked up again.

        Raises what the repository raises.
        """
        found = self
        for _ in range(_LOOKS - 1):
            try:
                return found, found.repository.localize(found.listing)
            except ModelChanged:
                listing = found.repository.find(found.listing.name)
                if listing is None:
                    raise
                found = replace(found, listing=listing)
        return found, found.repository.localize(found.listing)


@dataclass(frozen=True, slots=True)
class Scan:
    """What all repositories hold: the models that can be loaded by their qualified names, and the names that more than one of them has."""

    models: Mapping[str, Found] = field(default_factory=dict)
    duplicates: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Every name, sorted."""
        return sorted({*self.models, *self.duplicates})

    def called(self, name: str) -> list[str]:
        """Return the qualified names of the models with this plain name; the name itself where there is none."""
        return [key for key, found in self.models.items() if found.listing.name == name] or [name]


class Sources:
    """All model repositories; where they are `namespaced`, several of them may hold models of the same name."""

    def __init__(self, repositories: Sequence[Repository], namespaced: bool = False) -> None:
        self._repositories = repositories
        self._namespaced = namespaced

    def scan(self) -> Scan:
        """List all repositories. Raises Unavailable for one that cannot be read."""
        return _scan(
            self._found(repository, listing)
            for repository in self._repositories
            for listing in repository.scan().values()
        )

    def look_up(self, *names: str) -> Scan:
        """Return what all repositories hold of models of these names: no other model's files are looked at. Raises as `scan` does."""
        return _scan(
            self._found(repository, listing)
            for repository in self._repositories
            for name in names
            if (listing := repository.find(name)) is not None
        )

    def names(self) -> Counter[tuple[str, str]]:
        """Return every namespace and name and how many repositories have it; no model's files are looked at. Raises as `scan` does."""
        return Counter(
            (self._namespace(repository), name) for repository in self._repositories for name in repository.names()
        )

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when a repository sees that its models may have changed."""
        for repository in self._repositories:
            repository.watch(changed)

    def interrupt(self) -> None:
        """Let what waits for a repository end soon."""
        for repository in self._repositories:
            repository.interrupt()

    def close(self) -> None:
        """Close the repositories."""
        for repository in self._repositories:
            repository.close()

    def _found(self, repository: Repository, listing: ModelListing) -> Found:
        return Found(repository, listing, self._namespace(repository))

    def _namespace(self, repository: Repository) -> str:
        return without_secrets(repository.context.url) if self._namespaced else ""


def _scan(found: Iterable[Found]) -> Scan:
    models: dict[str, Found] = {}
    duplicates: set[str] = set()
    for model in found:
        if model.key in models:
            duplicates.add(model.key)
        models[model.key] = model
    for name in duplicates:
        del models[name]
    return Scan(models, frozenset(duplicates))
