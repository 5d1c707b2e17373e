"""Binding of threads to processor cores and to the memory of a NUMA node.

Needs neither external tools nor administrator rights.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable
from contextlib import suppress

_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261, "s390x": 269}
_MPOL_BIND = 2
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


def bind_thread(cores: Iterable[int], node: int | None) -> str:
    """Bind the calling thread, and the threads and processes that it starts later.

    An empty `cores` keeps the current cores. Returns an empty string, or a description of the
    failure: the kernel may lack support, or a container may forbid it.
    """
    return _bind_cores((0,), set(cores)) or ("" if node is None else _bind_memory(node))


def bind_process(cores: Iterable[int], node: int | None) -> str:
    """Bind every thread of the process to `cores`, and the calling thread to the memory of `node`.

    Threads that are started later inherit the memory binding.
    """
    return _bind_cores(map(int, os.listdir("/proc/self/task")), set(cores)) or bind_thread((), node)


def _bind_cores(threads: Iterable[int], cores: set[int]) -> str:
    try:
        for thread in threads if cores else ():
            with suppress(ProcessLookupError):  # the thread has ended
                os.sched_setaffinity(thread, cores)
    except OSError as error:
        return f"Unable to set NUMA thread affinity: {error.strerror}"
    return ""


def _bind_memory(node: int) -> str:
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return f"unable to set the NUMA memory policy: unknown system call on {platform.machine()}"
    words = (ctypes.c_ulong * (node // _WORD_BITS + 1))()
    words[node // _WORD_BITS] = 1 << node % _WORD_BITS
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads one bit less than the given number of bits.
    if libc.syscall(number, _MPOL_BIND, words, len(words) * _WORD_BITS + 1) != 0:
        return f"Unable to set NUMA memory policy: {os.strerror(ctypes.get_errno())}"
    return ""
