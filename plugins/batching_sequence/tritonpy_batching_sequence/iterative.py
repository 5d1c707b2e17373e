"""Iterative sequences: one request that a model runs again and again until it is answered."""

from __future__ import annotations

from collections.abc import Container
from itertools import count

from tritonpy import InferRequest, SequenceInfo


class Iterations:
    """Makes each request a sequence of its own: the first execution sees START, further ones no flag, and the final answer ends it."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def begin(self, request: InferRequest, live: Container[int | str]) -> None:
        """Give `request` an id that no sequence of `live` has. A client's own id is kept, and needs its START flag."""
        given = request.sequence
        if given is not None and given.id:
            request.sequence = SequenceInfo(given.id, given.start)
            return
        number = next(number for number in self._numbers if number not in live)
        request.sequence = SequenceInfo(number, start=True)

    @staticmethod
    def again(request: InferRequest) -> None:
        """Make `request` the next iteration of its sequence."""
        assert request.sequence is not None, "a request in an iterative sequence has an id: this is a bug"  # noqa: S101
        request.sequence = SequenceInfo(request.sequence.id)
