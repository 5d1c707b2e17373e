"""Whether the process may be forked, and what a fork must do to be on its own."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import suppress
from typing import Any

import numpy as np


def threads() -> int:
    """Return how many threads the process has, those of libraries included; 0 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def unforkable(before: int) -> str:
    """Return why the process must not be forked, empty for no reason; `before` is `threads()` from before the model's code was imported."""
    if not hasattr(os, "pidfd_open"):
        return "the system cannot watch processes that are not the server's own children"
    now = threads()
    if not now:
        return "the system does not tell how many threads there are"
    if now > before:  # numpy's own are there before: its library knows how to be forked
        return f"importing it started {now - before} threads"
    if any(_is_gpu(entry) for entry in os.listdir("/proc/self/fd")):
        return "importing it opened a GPU"
    return ""


def fork() -> int:
    """Fork; the child is in a session of its own, as a worker that was started afresh: who kills its parent's does not kill it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts numpy's threads too
        pid = os.fork()
    if pid == 0:
        os.setsid()
    return pid


class Randomness:
    """Random numbers of forks: each draws its own, as processes that started afresh would, unless the model's code seeds them.

    Made before that code is imported; `settle` comes after.
    """

    def __init__(self) -> None:
        self._python: Any = random.getstate()
        self._numpy = str(np.random.get_state(legacy=False))  # noqa: NPY002 - what models use
        self._numpy_seeded = False

    def settle(self) -> None:
        """Find out what was seeded."""
        self._python = None if random.getstate() == self._python else random.getstate()
        self._numpy_seeded = str(np.random.get_state(legacy=False)) != self._numpy  # noqa: NPY002 - what models use

    def part(self) -> None:
        """Go a way of its own, in a fork."""
        if self._python is not None:
            random.setstate(self._python)  # the interpreter has seeded it anew
        if not self._numpy_seeded:
            np.random.seed()  # noqa: NPY002 - what models use


def _is_gpu(entry: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{entry}").startswith("/dev/nvidia")
    return False
