"""Binding threads to processors and to the memory of a NUMA node, without any tool or right of an administrator."""

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
    """Bind the calling thread, and the threads and processes that it starts from now on; without cores it keeps its own.

    Return "" or what could not be done, and why: the kernel may not offer it, or a container not allow it.
    """
    return _bind_cores((0,), set(cores)) or ("" if node is None else _bind_memory(node))


def bind_process(cores: Iterable[int], node: int | None) -> str:
    """Bind every thread that the process has, as `bind_thread` does; the memory only of the calling one and of those that it starts."""
    return _bind_cores(map(int, os.listdir("/proc/self/task")), set(cores)) or bind_thread((), node)


def _bind_cores(threads: Iterable[int], cores: set[int]) -> str:
    try:
        for thread in threads if cores else ():
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.sched_setaffinity(thread, cores)
    except OSError as error:
        return f"Unable to set NUMA thread affinity: {error.strerror}"
    return ""


def _bind_memory(node: int) -> str:
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return f"memory policies of {platform.machine()} are not known"
    words = (ctypes.c_ulong * (node // _WORD_BITS + 1))()
    words[node // _WORD_BITS] = 1 << node % _WORD_BITS
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads one bit less than it is told that there are.
    if libc.syscall(number, _MPOL_BIND, words, len(words) * _WORD_BITS + 1) != 0:
        return f"Unable to set NUMA memory policy: {os.strerror(ctypes.get_errno())}"
    return ""
