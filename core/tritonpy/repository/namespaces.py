"""Models with the same name in several repositories: each repository is a namespace."""

from __future__ import annotations

from collections.abc import Collection

from tritonpy.errors import InvalidArgument, NotFound
from tritonpy.repository.model_table import Entry, ModelTable


class NamespacedTable(ModelTable):
    """A model table with qualified names; unambiguous plain names work, too."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, frozenset[str]] = {}

    def register_name(self, key: str, name: str) -> None:
        with self._lock:
            self._keys[name] = self._keys.get(name, frozenset()) | {key}
            self._entries.setdefault(key, Entry())

    def unregister_name(self, key: str, name: str) -> None:
        with self._lock:
            if name in self._keys:
                self._keys[name] -= {key}

    def _keys_named(self, name: str) -> Collection[str]:
        return self._keys.get(name, ())

    def _find_by_plain_name(self, name: str) -> tuple[str, Entry]:
        keys = self._keys.get(name)
        if keys is None:
            return super()._find_by_plain_name(name)
        if not keys:
            raise NotFound(f"Identifier of model '{name}' is not found in global map")
        if len(keys) > 1:
            text = f"There are {len(keys)} identifiers of model '{name}' in global map"
            raise InvalidArgument(f"{text}, model namespace must be provided to resolve ambiguity.")
        (key,) = keys
        return key, self._entries[key]
