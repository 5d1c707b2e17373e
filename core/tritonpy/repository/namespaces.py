"""Models of the same name in several repositories: each repository is a namespace."""

from __future__ import annotations

from collections.abc import Collection

from tritonpy.errors import InvalidArgument, NotFound
from tritonpy.repository.table import Entry, ModelTable


class NamespacedTable(ModelTable):
    """Its models have qualified names, and are also found by their plain ones where these are not ambiguous."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, frozenset[str]] = {}

    def introduce(self, key: str, name: str) -> None:
        with self._changes:
            self._keys[name] = self._keys.get(name, frozenset()) | {key}
            self._entries.setdefault(key, Entry())

    def dismiss(self, key: str, name: str) -> None:
        with self._changes:
            if name in self._keys:
                self._keys[name] -= {key}

    def _called(self, name: str) -> Collection[str]:
        return self._keys.get(name, ())

    def _elsewhere(self, name: str) -> tuple[str, Entry]:
        keys = self._keys.get(name)
        if keys is None:
            return super()._elsewhere(name)
        if not keys:
            raise NotFound(f"Identifier of model '{name}' is not found in global map")
        if len(keys) > 1:
            text = f"There are {len(keys)} identifiers of model '{name}' in global map"
            raise InvalidArgument(f"{text}, model namespace must be provided to resolve ambiguity.")
        (key,) = keys
        return key, self._entries[key]
