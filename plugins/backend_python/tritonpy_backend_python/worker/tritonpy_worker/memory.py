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
    reserve far more than they use. Thread stacks count (8 MiB each on Linux); shared memory and
    files of the server do not. Raises `OSError` or `ValueError` if the system rejects the limit.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class Reserve:
    """Reserved memory, which is freed while a `MemoryError` is reported."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray(_RESERVE)

    @contextmanager
    def released_for(self, error: BaseException) -> Iterator[None]:
        """Free the reserve in this context, if `error` is a `MemoryError`.

        At the end, clear the frames of `error`, which refer to the model's objects, and allocate
        the reserve again.
        """
        if not isinstance(error, MemoryError):
            yield
            return
        self._held = None
        yield
        clear_frames(error.__traceback__)
        self._held = bytearray(_RESERVE)
