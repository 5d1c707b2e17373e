"""Settings of the Python interpreter for a server, chosen by measurements (see bench/)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable
from functools import cache

# A thread that returns from a framework waits at most this long for the interpreter. The default of
# 5 ms is long compared to an inference of 50 us.
SWITCH_INTERVAL_S = 0.0005
# Allocations between two collections of the youngest generation: a batch of 64 requests makes some
# 2,000.
GC_THRESHOLD = 20_000


# glibc's mallopt: (parameter, bytes). By default glibc immediately returns freed blocks of
# megabytes to the kernel. Each request then causes a page fault for every page of its buffers. With
# 16 MiB in and out, these options reduce 5,200 page faults to 23.
MALLOC_OPTIONS = (
    # M_MMAP_THRESHOLD: blocks up to this size (glibc's maximum) come from the heap
    (-3, 32 * 2**20),
    (-1, 128 * 2**20),  # M_TRIM_THRESHOLD: how much free memory the heap keeps
    (-2, 32 * 2**20),  # M_TOP_PAD: how much extra memory each heap extension requests
)


def prepare_interpreter() -> None:
    """Set switch interval, garbage collector thresholds and memory options of the C library."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    # C libraries other than glibc have no mallopt
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, size in MALLOC_OPTIONS:
            mallopt(parameter, size)


def return_free_memory() -> None:
    """Return freed memory to the kernel, after a model was unloaded.

    Memory of requests is not returned, since it is needed again immediately.
    """
    _malloc_trim()(0)


@cache
def _malloc_trim() -> Callable[[int], object]:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # not glibc
        return lambda _pad: None


def settle_interpreter() -> None:
    """Exclude the objects of start-up from garbage collection, since they live until shutdown."""
    gc.collect()
    gc.freeze()


def release_interpreter() -> None:
    """Include the objects of start-up in garbage collection again: the process may continue."""
    gc.unfreeze()
