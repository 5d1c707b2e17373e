"""Fork safety: whether the process may be forked, and the setup of a fork."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import suppress
from typing import Any

import numpy as np


def threads() -> int:
    """Return the number of threads, including those of libraries, or 0 if it is unknown."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def fork_obstacle(before: int) -> str:
    """Return the reason why the process must not be forked, or an empty string.

    `before` is the result of `threads()` before the model's code was imported.
    """
    if not hasattr(os, "pidfd_open"):
        return "the system cannot watch processes that are not children of the server"
    now = threads()
    if not now:
        return "the system does not report the number of threads"
    if now > before:  # numpy's own threads were there before, and its library supports forks
        return f"importing it started {now - before} threads"
    if any(_is_gpu(entry) for entry in os.listdir("/proc/self/fd")):
        return "importing it opened a GPU"
    return ""


def fork() -> int:
    """Fork, and return the result of `os.fork`.

    Like a new worker, the child gets its own session, so signals to its parent's process group do
    not reach it.
    """
    with warnings.catch_warnings():
        # Python 3.12 also counts numpy's threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.setsid()
    return pid


class RandomState:
    """The state of the random generators, for forks.

    Each fork has different random numbers, unless the model's code seeds the generators. Create
    this object before the code is imported and call `detect_seeding` afterwards.
    """

    def __init__(self) -> None:
        self._python: Any = random.getstate()
        self._numpy = str(np.random.get_state(legacy=False))  # noqa: NPY002 - models use this generator
        self._numpy_seeded = False

    def detect_seeding(self) -> None:
        """Detect which generators the code seeded."""
        self._python = None if random.getstate() == self._python else random.getstate()
        self._numpy_seeded = str(np.random.get_state(legacy=False)) != self._numpy  # noqa: NPY002 - see above

    def reseed(self) -> None:
        """Restore seeded generators and reseed the others, in a fork."""
        if self._python is not None:
            random.setstate(self._python)  # the interpreter reseeded it at the fork
        if not self._numpy_seeded:
            np.random.seed()  # noqa: NPY002 - see above


def _is_gpu(entry: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{entry}").startswith("/dev/nvidia")
    return False
