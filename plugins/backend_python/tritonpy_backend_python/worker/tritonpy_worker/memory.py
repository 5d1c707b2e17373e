"""How much memory a model may have, and what is kept for the moment when it has no more."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import clear_frames

_RESERVE = 4 << 20  # bytes: enough to put an error into words and send it


def limit(size: int) -> None:
    """Let the process have at most `size` bytes of writable memory of its own, interpreter and libraries included.

    RLIMIT_DATA, because RLIMIT_AS counts what is only reserved: CUDA and allocators reserve far more than they use. The server's shared
    memory and files are not counted, stacks of threads are (on Linux 8 MiB each). Raises OSError and ValueError where the system refuses.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class Reserve:
    """Memory that is set free for as long as a MemoryError is reported."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray(_RESERVE)

    @contextmanager
    def spent_on(self, error: BaseException) -> Iterator[None]:
        """Report `error`; afterwards nothing that the model held when it was raised is held by it any more."""
        if not isinstance(error, MemoryError):
            yield
            return
        self._held = None
        yield
        clear_frames(error.__traceback__)
        self._held = bytearray(_RESERVE)
