from __future__ import annotations

import os
import threading

import pytest

from tritonpy.ipc import host_binding
from tritonpy.ipc.host_binding import bind_process, bind_thread

CORES = sorted(os.sched_getaffinity(0))


def in_a_thread(act):
    """Return what `act` returns in a thread of its own, whose binding ends with it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_and_what_it_starts_run_where_they_are_told():
    def act():
        said = bind_thread(CORES[:1], None)
        return said, os.sched_getaffinity(0), in_a_thread(lambda: os.sched_getaffinity(0))

    assert in_a_thread(act) == ("", {CORES[0]}, {CORES[0]})
    assert sorted(os.sched_getaffinity(0)) == CORES


def test_without_cores_a_thread_keeps_its_own():
    assert in_a_thread(lambda: (bind_thread((), None), sorted(os.sched_getaffinity(0)))) == ("", CORES)


def test_cores_that_cannot_be_had_are_told():
    assert in_a_thread(lambda: bind_thread([1023], None)).startswith("Unable to set NUMA thread affinity: ")


def test_every_thread_of_a_process_is_bound():
    child = os.fork()
    if child == 0:
        ready, over = threading.Event(), threading.Event()
        found = []

        def other():
            ready.set()
            over.wait(10)
            found.append(os.sched_getaffinity(0))

        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(10)
        said = bind_process(CORES[:1], None)
        over.set()
        thread.join()
        os._exit(0 if (said, found, os.sched_getaffinity(0)) == ("", [{CORES[0]}], {CORES[0]}) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Kernel:
    """Stands for the C library: keeps the system calls."""

    def __init__(self, result):
        self.result, self.calls = result, []

    def syscall(self, number, mode, words, bits):
        self.calls.append((number, mode, list(words), bits))
        return self.result


@pytest.fixture
def kernel(monkeypatch):
    it = Kernel(0)
    monkeypatch.setattr(host_binding.ctypes, "CDLL", lambda *_, **__: it)
    monkeypatch.setattr(host_binding.platform, "machine", lambda: "x86_64")
    return it


@pytest.mark.parametrize(("node", "words"), [(0, [1]), (3, [8]), (64, [0, 1])])
def test_memory_is_bound_to_a_node(kernel, node, words):
    assert bind_thread((), node) == ""
    assert kernel.calls == [(238, 2, words, 64 * len(words) + 1)]


def test_a_kernel_that_says_no_is_told(kernel, monkeypatch):
    kernel.result = -1
    monkeypatch.setattr(host_binding.ctypes, "get_errno", lambda: 1)
    assert bind_thread((), 0) == "Unable to set NUMA memory policy: Operation not permitted"


def test_a_machine_whose_calls_are_not_known_is_told(kernel, monkeypatch):
    monkeypatch.setattr(host_binding.platform, "machine", lambda: "abacus")
    assert bind_thread((), 0) == "memory policies of abacus are not known"


def test_the_real_call_works_or_says_why():
    assert in_a_thread(lambda: bind_thread((), 0)) in {
        "",
        "Unable to set NUMA memory policy: Operation not permitted",
        "Unable to set NUMA memory policy: Function not implemented",
    }
