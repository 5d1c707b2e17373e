"""What each request is: which inputs, and which part of which sequence."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle


@dataclass(frozen=True, slots=True)
class Job:
    """Inputs by their number; `sequence` 0 belongs to none."""

    step: int
    sequence: int = 0
    start: bool = False
    end: bool = False


class Jobs(ABC):
    """Where a loop takes its requests from. A *place* is one of the requests that may be in flight at a time."""

    @abstractmethod
    def take(self, place: int) -> Job:
        """Return what this place sends next."""

    def closing(self, place: int) -> Job | None:
        """Return what ends whatever the place has begun, or None."""
        return None


class PlainJobs(Jobs):
    """All inputs in turn."""

    def __init__(self, steps: int) -> None:
        self._jobs = cycle([Job(step) for step in range(steps)])

    def take(self, place: int) -> Job:
        """Return the next inputs."""
        return next(self._jobs)


class SequenceJobs(Jobs):
    """One open sequence per place: its requests in order, each with the sequence's id, the first and the last marked.

    `streams` are numbers of inputs: each new sequence takes the next stream, and begins it again where it is shorter than the sequence.
    """

    def __init__(self, streams: Sequence[Sequence[int]], lengths: Iterator[int], ids: Iterator[int]) -> None:
        self._streams = cycle(streams)
        self._lengths = lengths
        self._ids = ids
        self._open: dict[int, _OpenSequence] = {}

    def take(self, place: int) -> Job:
        """Return the next request of the place's sequence, or the first of a new one."""
        sequence = self._open.get(place)
        if sequence is None:
            sequence = self._open[place] = self._begun()
        job = sequence.next()
        if job.end:
            del self._open[place]
        return job

    def closing(self, place: int) -> Job | None:
        """Return a last request for the place's sequence where one is open."""
        sequence = self._open.pop(place, None)
        return None if sequence is None else sequence.last()

    def _begun(self) -> _OpenSequence:
        used = {sequence.number for sequence in self._open.values()}
        number = next(number for number in self._ids if number not in used)
        stream = next(self._streams)
        return _OpenSequence(number, stream, next(self._lengths) or len(stream))


class _OpenSequence:
    def __init__(self, number: int, stream: Sequence[int], length: int) -> None:
        self.number = number
        self._stream = stream
        self._length = length
        self._sent = 0

    def next(self) -> Job:
        step = self._stream[self._sent % len(self._stream)]
        self._sent += 1
        return Job(step, self.number, start=self._sent == 1, end=self._sent == self._length)

    def last(self) -> Job:
        self._length = self._sent + 1
        return self.next()


def sequence_lengths(base: int, variation: float, seed: int) -> Iterator[int]:
    """Yield lengths within `variation` percent of `base`, at least 1."""
    chance = random.Random(seed)  # noqa: S311  nothing secret
    spread = int(base * variation / 100)
    while True:
        yield max(base + chance.randint(-spread, spread), 1)


def sequence_ids(start: int, end: int | None, hand: int, hands: int) -> Iterator[int]:
    """Yield the ids that one of several client processes uses: from `start` up to `end` (excluded) over and over, or without bound."""
    if end is None:
        return count(start + hand, hands)
    return cycle(range(start + hand, end, hands))
