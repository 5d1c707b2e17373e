"""The model repositories of a server, and which of them has which model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonpy.api.repository import ModelChanged, ModelListing, Repository
from tritonpy.repository.local import LocalRepository
from tritonpy_config.model_fit import qualified_name
from tritonpy_config.redacted_urls import redact_urls
from tritonpy_types.errors import AlreadyExists, InvalidArgument

DUPLICATE = "model appears in two or more repositories"
_MAX_LOCALIZE_ATTEMPTS = 3  # for a model whose files change while they are copied


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model and its repository; `namespace` is empty if model names are unique."""

    repository: Repository
    listing: ModelListing
    namespace: str = ""

    @property
    def key(self) -> str:
        """The model's qualified name."""
        return qualified_name(self.namespace, self.listing.name)

    def localize(self) -> tuple[FoundModel, Path]:
        """Return a local folder with the model's files, and the model as it is there.

        A model that changes meanwhile is looked up again. Raises what the repository raises.
        """
        found = self
        for _ in range(_MAX_LOCALIZE_ATTEMPTS - 1):
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
    """The models of all repositories by qualified name, and the names that several of them have."""

    models: Mapping[str, FoundModel] = field(default_factory=dict)
    duplicates: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Every name, sorted."""
        return sorted({*self.models, *self.duplicates})

    def keys_for(self, name: str) -> list[str]:
        """Return the qualified names of the models with this plain name, or the name itself."""
        return [key for key, found in self.models.items() if found.listing.name == name] or [name]


class Sources:
    """All model repositories. With `namespaced`, several may have models of the same name."""

    def __init__(self, repositories: Sequence[Repository], namespaced: bool = False) -> None:
        self._repositories = repositories
        self._namespaced = namespaced

    def scan(self) -> Scan:
        """List all repositories. Raises `Unavailable` for one that cannot be read."""
        return _scan(
            self._found(repository, listing)
            for repository in self._repositories
            for listing in repository.scan().values()
        )

    def look_up(self, *names: str) -> Scan:
        """Return the models with these names, without reading other models.

        Raises as `scan` does.
        """
        return _scan(
            self._found(repository, listing)
            for repository in self._repositories
            for name in names
            if (listing := repository.find(name)) is not None
        )

    def names(self) -> Counter[tuple[str, str]]:
        """Return every (namespace, name) and its number of repositories, without reading files.

        Raises as `scan` does.
        """
        return Counter(
            (self._namespace(repository), name)
            for repository in self._repositories
            for name in repository.names()
        )

    def register(self, repository: LocalRepository) -> None:
        """Add a repository. Raises AlreadyExists if its path or one of its names is taken."""
        url = repository.context.url
        if not repository.root.is_dir():
            raise InvalidArgument(f"failed to register '{url}', repository not found")
        if any(each.context.url == url for each in self._repositories):
            raise AlreadyExists(f"model repository '{url}' has already been registered")
        for name in repository.folders:
            if any(name in getattr(each, "folders", ()) for each in self._repositories):
                raise AlreadyExists(
                    f"failed to register '{name}', there is a conflicting mapping for '{name}'"
                )
        self._repositories = [*self._repositories, repository]

    def unregister(self, url: str) -> None:
        """Remove a repository. Raises InvalidArgument for one that is not registered."""
        removed = [each for each in self._repositories if each.context.url == url]
        if not removed:
            raise InvalidArgument(f"failed to unregister '{url}', repository not found")
        self._repositories = [each for each in self._repositories if each not in removed]
        for each in removed:
            each.close()

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when a repository notices that its models may have changed."""
        for repository in self._repositories:
            repository.watch(changed)

    def interrupt(self) -> None:
        """Interrupt pending operations of the repositories."""
        for repository in self._repositories:
            repository.interrupt()

    def close(self) -> None:
        """Close the repositories."""
        for repository in self._repositories:
            repository.close()

    def _found(self, repository: Repository, listing: ModelListing) -> FoundModel:
        return FoundModel(repository, listing, self._namespace(repository))

    def _namespace(self, repository: Repository) -> str:
        return redact_urls(repository.context.url) if self._namespaced else ""


def _scan(found: Iterable[FoundModel]) -> Scan:
    models: dict[str, FoundModel] = {}
    duplicates: set[str] = set()
    for model in found:
        if model.key in models:
            duplicates.add(model.key)
        models[model.key] = model
    for name in duplicates:
        del models[name]
    return Scan(models, frozenset(duplicates))
