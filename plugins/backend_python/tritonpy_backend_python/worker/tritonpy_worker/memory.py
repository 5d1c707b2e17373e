"""The memory limit of a worker, and a reserve for reporting its errors."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import clear_frames

_RESERVE = 4 << 20  # bytes, enough to format an error and send it


def limit(size: int) -> None:
    """Limit the process's private writable memory, libraries included, to `size` bytes.

    This uses RLIMIT_DATA, because RLIMIT_AS also counts reserved memory: CUDA and allocators
    reserve far more than they use. Shared memory and files of the server are not counted, thread
    stacks are (8 MiB each on Linux). Raises `OSError` and `ValueError` if the system rejects the
    limit.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class Reserve:
    """Memory that is freed while a `MemoryError` is reported."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray(_RESERVE)

    @contextmanager
    def released_for(self, error: BaseException) -> Iterator[None]:
        """Free the reserve to report `error`.

        Afterwards, clear the frames that hold the model's objects.
        """
        if not isinstance(error, MemoryError):
            yield
            return
        self._held = None
        yield
        clear_frames(error.__traceback__)
        self._held = bytearray(_RESERVE)
