"""The last execution that a worker began, in memory that outlives the worker process."""

from __future__ import annotations

import os

from .memory_file import create, map_whole

_SIZE = 8


class Progress:
    """A number that the worker writes and the server reads. Closes `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._memory = memoryview(map_whole(descriptor)).cast("Q")
        finally:
            os.close(descriptor)

    @staticmethod
    def create() -> int:
        """Return the descriptor of the memory, which both ends map. Raises `OSError`."""
        return create(_SIZE)

    def begin(self, execution: int) -> None:
        """Record that `execution` begins; earlier ones have ended."""
        self._memory[0] = execution

    @property
    def begun(self) -> int:
        """The number of the last execution that began, or 0."""
        return self._memory[0]
