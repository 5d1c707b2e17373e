"""Iterative sequences: one request that a model executes repeatedly until its final response."""

from __future__ import annotations

from collections.abc import Container
from itertools import count

from tritonpy import InferRequest, SequenceInfo


class Iterations:
    """Makes each request a separate sequence.

    The first execution has the START flag, later ones have no flag. The final response ends the
    sequence.
    """

    def __init__(self) -> None:
        self._numeric_ids = count(1)

    def begin(self, request: InferRequest, live: Container[int | str]) -> None:
        """Give `request` a sequence id that is not in `live`, unless the client has set one.

        With its own id, the client must also set the START flag.
        """
        given = request.sequence
        if given is not None and given.id:
            request.sequence = SequenceInfo(given.id, given.start)
            return
        number = next(number for number in self._numeric_ids if number not in live)
        request.sequence = SequenceInfo(number, start=True)

    @staticmethod
    def next_iteration(request: InferRequest) -> None:
        """Make `request` the next iteration of its sequence."""
        assert request.sequence is not None, (  # noqa: S101
            "a request in an iterative sequence has an id: this is a bug"
        )
        request.sequence = SequenceInfo(request.sequence.id)
