"""The registry of all custom metrics of a server, by name and labels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tritonpy.custom_metrics.cells import Cell
from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.names import check_name
from tritonpy.custom_metrics.snapshot import FamilySnapshot
from tritonpy.errors import InvalidArgument

Labels = tuple[tuple[str, str], ...]


class SharedFamily:
    """The metrics of one name; it is removed with its last owner."""

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self.name = name
        self.description = description
        self.kind = kind
        self.owners = 0
        self.cells: dict[Labels, Cell] = {}

    def snapshot(self) -> FamilySnapshot:
        """Return the metrics as plain values."""
        metrics = [cell.snapshot(dict(labels)) for labels, cell in self.cells.items()]
        return FamilySnapshot(self.name, self.description, self.kind, metrics)


class CustomMetrics:
    """The registry of a server, which models use through `ModelMetrics`.

    `lock` protects its contents.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._families: dict[str, SharedFamily] = {}
        self._sources: list[Callable[[], Sequence[FamilySnapshot]]] = []

    def add_source(self, source: Callable[[], Sequence[FamilySnapshot]]) -> None:
        """Add a function that returns further families.

        Called at each snapshot, without the lock.
        """
        self._sources.append(source)

    def own(self, name: str, description: str, kind: MetricKind) -> SharedFamily:
        """Return the family `name` with one more owner; the caller holds the lock.

        The description of the first owner stays. Raises InvalidArgument for a bad name and for a
        family of another kind, AlreadyExists for one of the server's own metrics.
        """
        family = self._families.get(name)
        if family is None:
            check_name(name)
            family = self._families[name] = SharedFamily(name, description, kind)
        elif family.kind is not kind:
            raise InvalidArgument("Family name already exists with different type")
        family.owners += 1
        return family

    def disown(self, family: SharedFamily) -> None:
        """Remove one owner; the caller holds the lock."""
        family.owners -= 1
        if family.owners == 0:
            del self._families[family.name]

    def snapshot(self) -> list[FamilySnapshot]:
        """Return every family that has a metric, in the order of their creation."""
        with self.lock:
            found = [family.snapshot() for family in self._families.values() if family.cells]
        for source in self._sources:
            found += source()
        return found
