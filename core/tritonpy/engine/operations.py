"""The management operations of a server, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy.api.operation import Answerer, Operation, OperationCall
from tritonpy.errors import NotFound, PluginError

OF_THE_PROTOCOL = frozenset(
    {"models", "health", "repository", "systemsharedmemory", "cudasharedmemory", "trace", "logging"}
)
"""First words of paths that operations may not have."""


class Operations:
    """What the core and plugins offered; filled while the server is put together, then only read."""

    def __init__(self) -> None:
        self._answerers: dict[str, tuple[Operation, Answerer]] = {}

    def offer(self, operations: Mapping[Operation, Answerer]) -> None:
        """Add `operations`. Raises PluginError where a name, a path or a word of the protocol is taken."""
        for operation, answerer in operations.items():
            self._check(operation)
            self._answerers[operation.name] = (operation, answerer)

    def _check(self, operation: Operation) -> None:
        if operation.path.split("/")[0] in OF_THE_PROTOCOL:
            raise PluginError(f"the operation '{operation.name}' has a path of the protocol: /v2/{operation.path}")
        for other, _ in self._answerers.values():
            if other.name == operation.name or (other.method, other.path) == (operation.method, operation.path):
                raise PluginError(
                    f"two operations have one name or path: '{other.name}' ({other.method} /v2/{other.path}) "
                    f"and '{operation.name}' ({operation.method} /v2/{operation.path})"
                )

    def listed(self) -> Sequence[Operation]:
        """Return them in the order in which they were offered."""
        return [operation for operation, _ in self._answerers.values()]

    def call(self, name: str, call: OperationCall) -> Any:
        """Return the answer. Raises NotFound for an unknown name, and what the operation raises."""
        if name not in self._answerers:
            raise NotFound(f"there is no operation '{name}'")
        return self._answerers[name][1](call)
