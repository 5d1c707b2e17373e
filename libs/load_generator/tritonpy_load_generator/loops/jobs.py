"""Sources of requests: the inputs of each request and its position in a sequence."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle


@dataclass(frozen=True, slots=True)
class Job:
    """One request to send: the number of its inputs; `sequence` is 0 outside of sequences."""

    step: int
    sequence: int = 0
    start: bool = False
    end: bool = False


class JobSource(ABC):
    """Source of a loop's requests.

    A *slot* is one of the requests that may be in flight at a time.
    """

    @abstractmethod
    def next_job(self, slot: int) -> Job:
        """Return the next job of a slot."""

    def closing_job(self, slot: int) -> Job | None:
        """Return the job that ends the slot's open sequence, or None."""
        return None


class PlainJobSource(JobSource):
    """Cycles through all inputs."""

    def __init__(self, steps: int) -> None:
        self._jobs = cycle([Job(step) for step in range(steps)])

    def next_job(self, slot: int) -> Job:
        """Return the job with the next inputs."""
        return next(self._jobs)


class SequenceJobSource(JobSource):
    """One open sequence per slot, with its requests in order.

    `streams` are lists of input numbers. Each new sequence takes the next stream and repeats it if
    the sequence is longer.
    """

    def __init__(
        self, streams: Sequence[Sequence[int]], lengths: Iterator[int], ids: Iterator[int]
    ) -> None:
        self._streams = cycle(streams)
        self._lengths = lengths
        self._ids = ids
        self._open: dict[int, _OpenSequence] = {}

    def next_job(self, slot: int) -> Job:
        """Return the next request of the slot's sequence, or the first of a new one."""
        sequence = self._open.get(slot)
        if sequence is None:
            sequence = self._open[slot] = self._begin_sequence()
        job = sequence.next()
        if job.end:
            del self._open[slot]
        return job

    def closing_job(self, slot: int) -> Job | None:
        """Return the last request of the slot's open sequence, or None."""
        sequence = self._open.pop(slot, None)
        return None if sequence is None else sequence.last()

    def _begin_sequence(self) -> _OpenSequence:
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
    """Yield random lengths within `variation` percent of `base`, at least 1."""
    rng = random.Random(seed)  # noqa: S311  nothing secret
    spread = int(base * variation / 100)
    while True:
        yield max(base + rng.randint(-spread, spread), 1)


def sequence_ids(
    start: int, end: int | None, client_index: int, client_count: int
) -> Iterator[int]:
    """Yield one client process's sequence ids from `start`: endlessly, or repeated below `end`."""
    if end is None:
        return count(start + client_index, client_count)
    return cycle(range(start + client_index, end, client_count))
