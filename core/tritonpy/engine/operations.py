"""The management operations of a server, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy.api.engine import Operation, OperationCall
from tritonpy.api.operation import OperationHandler
from tritonpy_types.errors import NotFound, PluginError

RESERVED_PATHS = frozenset(
    {"models", "health", "repository", "systemsharedmemory", "cudasharedmemory", "trace", "logging"}
)
"""First path segments that operations must not use."""


class Operations:
    """The operations of the core and of plugins. They do not change after the server is built."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Operation, OperationHandler]] = {}

    def offer(self, operations: Mapping[Operation, OperationHandler]) -> None:
        """Add `operations`. Raises PluginError if a name or path is used or reserved."""
        for operation, handler in operations.items():
            self._check(operation)
            self._handlers[operation.name] = (operation, handler)

    def _check(self, operation: Operation) -> None:
        if operation.path.split("/")[0] in RESERVED_PATHS:
            raise PluginError(
                f"the operation '{operation.name}' has a reserved path: /v2/{operation.path}"
            )
        for other, _ in self._handlers.values():
            if other.name == operation.name or (other.method, other.path) == (
                operation.method,
                operation.path,
            ):
                raise PluginError(
                    f"two operations have the same name or path: '{other.name}' ({other.method} "
                    f"/v2/{other.path}) "
                    f"and '{operation.name}' ({operation.method} /v2/{operation.path})"
                )

    def listed(self) -> Sequence[Operation]:
        """Return the operations in the order in which they were added."""
        return [operation for operation, _ in self._handlers.values()]

    def call(self, name: str, call: OperationCall) -> Any:
        """Return the result. Raises NotFound for an unknown name, and the operation's errors."""
        if name not in self._handlers:
            raise NotFound(f"unknown operation '{name}'")
        return self._handlers[name][1](call)
