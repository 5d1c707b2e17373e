"""Deadlock detection in a wait-for graph, as pure functions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
# A node can proceed when at least one member of each of its groups can. A node without groups or
# without an entry is not blocked.
Waits = Mapping[Node, Collection[Collection[Node]]]


def find_stuck(waits: Waits[Node]) -> set[Node]:
    """Return the nodes that can never proceed, in any order of events."""
    held = set(waits)
    while True:
        free = {node for node in held if all(any(each not in held for each in group) for group in waits[node])}
        if not free:
            return held
        held -= free


def find_cycle(waits: Waits[Node], held: set[Node], start: Node) -> list[Node]:
    """Return a path of stuck nodes from `start`, each waiting for the next, until one repeats."""
    path = [start]
    while path[-1] not in path[:-1]:
        group = next(group for group in waits[path[-1]] if held.issuperset(group))
        path.append(next(iter(group)))
    return path
