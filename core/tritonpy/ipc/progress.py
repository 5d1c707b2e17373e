"""Which execution a worker began last, in memory that outlives the worker's process."""

from __future__ import annotations

import os

from .memory_file import create, map_whole

_SIZE = 8


class Progress:
    """One number that the worker writes and the server reads. `descriptor` is closed here."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._word = memoryview(map_whole(descriptor)).cast("Q")
        finally:
            os.close(descriptor)

    @staticmethod
    def create() -> int:
        """Return the descriptor of the memory, both ends map it. Raises OSError if there is none."""
        return create(_SIZE)

    def begin(self, execution: int) -> None:
        """Note that the execution of this number begins; those before it are over."""
        self._word[0] = execution

    @property
    def begun(self) -> int:
        """The number of the execution that began last, 0 before the first."""
        return self._word[0]
