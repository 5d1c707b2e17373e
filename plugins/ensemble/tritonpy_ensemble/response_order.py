"""The response order of a decoupled ensemble, derived from the order of its members' responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class OrderNode(Generic[Item]):
    """A position in the response order.

    A node stands for one item, or for all items that result from the responses of one call. The
    latter are its children.
    """

    __slots__ = ("children", "closed", "item", "parent")

    def __init__(self, parent: OrderNode[Item] | None = None) -> None:
        self.parent = parent
        self.children: deque[OrderNode[Item]] = deque()
        self.item: Item | None = None
        self.closed = False

    def add_child(self) -> OrderNode[Item]:
        """Append and return a new child node."""
        new = OrderNode(self)
        self.children.append(new)
        return new


class ResponseOrder(Generic[Item]):
    """Holds items back until all earlier nodes are closed.

    `held` is the number of items held back. `next` is the node that the others wait for.
    """

    __slots__ = ("held", "next", "root")

    def __init__(self) -> None:
        self.held = 0
        self.root: OrderNode[Item] = OrderNode()
        self.next = self.root

    def put(self, node: OrderNode[Item], item: Item) -> None:
        """Store the item of `node` and close it."""
        node.item = item
        node.closed = True
        self.held += 1

    def due(self) -> Iterator[Item]:
        """Remove and yield the items whose earlier nodes are all closed, in order."""
        return self._take(everything=False)

    def rest(self) -> Iterator[Item]:
        """Remove and yield all remaining items in order. No more may follow."""
        return self._take(everything=True)

    def _take(self, everything: bool) -> Iterator[Item]:
        while True:
            node = self.next
            if node.item is not None:
                item, node.item = node.item, None
                self.held -= 1
                yield item
            if node.children:
                self.next = node.children[0]
            elif node.parent is not None and (node.closed or everything):
                self.next = node.parent
                self.next.children.popleft()
            else:
                return
