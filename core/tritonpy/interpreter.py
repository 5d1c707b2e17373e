"""Settings of the Python interpreter that serve a server, chosen by measurement (see bench/)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable
from functools import cache

# A thread that comes back from a framework waits this long for the interpreter at most. The default of 5 ms is long
# beside an inference of 50 us.
SWITCH_INTERVAL_S = 0.0005
# Objects between two looks at the youngest generation: a batch of 64 requests makes some 2,000.
GC_THRESHOLD = 20_000


# glibc's mallopt: (parameter, bytes). By default freed blocks of megabytes go back to the kernel at once, and each request pays for
# them again page by page: 5,200 page faults for 16 MiB in and out instead of 23, 27 requests/s instead of 43.
MALLOC_OPTIONS = (
    (-3, 32 * 2**20),  # M_MMAP_THRESHOLD: blocks up to this size (the most that glibc takes) come from the heap
    (-1, 128 * 2**20),  # M_TRIM_THRESHOLD: how much free memory the heap keeps
    (-2, 32 * 2**20),  # M_TOP_PAD: how much more it asks for at once
)


def prepare_interpreter() -> None:
    """Set the switch interval, the rhythm of the garbage collector, and how the C library keeps freed memory."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    with contextlib.suppress(AttributeError, OSError):  # another C library than glibc has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, size in MALLOC_OPTIONS:
            mallopt(parameter, size)


def return_free_memory() -> None:
    """Give the kernel what was freed: the memory of a model is not that of requests, which comes and goes all the time."""
    _malloc_trim()(0)


@cache
def _malloc_trim() -> Callable[[int], object]:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # another C library than glibc
        return lambda _pad: None


def settle_interpreter() -> None:
    """Take what start-up made out of the garbage collector's sight: it lives as long as the server."""
    gc.collect()
    gc.freeze()


def release_interpreter() -> None:
    """Give what start-up made back to the garbage collector: the server is gone, its host may live on."""
    gc.unfreeze()
