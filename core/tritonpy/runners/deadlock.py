"""Who waits for whom, and who waits for ever: pure functions of a graph."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
# A node goes on when, of each of its groups, at least one member does. A node without groups, or without an entry, is not held up.
Waits = Mapping[Node, Collection[Collection[Node]]]


def stuck(waits: Waits[Node]) -> set[Node]:
    """Return the nodes that can never go on, whatever happens first."""
    held = set(waits)
    while True:
        free = {node for node in held if all(any(each not in held for each in group) for group in waits[node])}
        if not free:
            return held
        held -= free


def circle(waits: Waits[Node], held: set[Node], start: Node) -> list[Node]:
    """Return a way from the stuck node `start`, from each node to one that it waits for in vain, until a node comes again."""
    path = [start]
    while path[-1] not in path[:-1]:
        group = next(group for group in waits[path[-1]] if held.issuperset(group))
        path.append(next(iter(group)))
    return path
