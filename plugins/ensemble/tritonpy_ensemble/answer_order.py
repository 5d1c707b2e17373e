"""In which order the answers of an ensemble leave: that in which its decoupled models gave the answers that they come from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Place(Generic[Answer]):
    """A place in the order: of one answer, or of all that come from the answers of one call, which are the places below it."""

    __slots__ = ("above", "answer", "below", "closed")

    def __init__(self, above: Place[Answer] | None = None) -> None:
        self.above = above
        self.below: deque[Place[Answer]] = deque()
        self.answer: Answer | None = None
        self.closed = False

    def branch(self) -> Place[Answer]:
        """Return a new place, the last one below this one."""
        new = Place(self)
        self.below.append(new)
        return new


class AnswerOrder(Generic[Answer]):
    """Holds answers back until every place before theirs is closed; `held` says how many. `next` is the place that the others wait for."""

    __slots__ = ("held", "next", "root")

    def __init__(self) -> None:
        self.held = 0
        self.root: Place[Answer] = Place()
        self.next = self.root

    def put(self, place: Place[Answer], answer: Answer) -> None:
        """Put the one answer of `place` there."""
        place.answer = answer
        place.closed = True
        self.held += 1

    def due(self) -> Iterator[Answer]:
        """Take out the answers that wait for nothing any more, in order."""
        return self._take(everything=False)

    def rest(self) -> Iterator[Answer]:
        """Take out all answers that there are, in order: nothing more will come."""
        return self._take(everything=True)

    def _take(self, everything: bool) -> Iterator[Answer]:
        while True:
            place = self.next
            if place.answer is not None:
                answer, place.answer = place.answer, None
                self.held -= 1
                yield answer
            if place.below:
                self.next = place.below[0]
            elif place.above is not None and (place.closed or everything):
                self.next = place.above
                self.next.below.popleft()
            else:
                return
