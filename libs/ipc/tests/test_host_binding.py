from __future__ import annotations

import os
import threading

import pytest

from tritonpy_ipc import host_binding
from tritonpy_ipc.host_binding import bind_process, bind_thread

CORES = sorted(os.sched_getaffinity(0))


def in_a_thread(act):
    """Return the result of `act` on a new thread, whose binding ends with it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_and_its_children_run_on_the_given_cores():
    def act():
        failure = bind_thread(CORES[:1], None)
        return failure, os.sched_getaffinity(0), in_a_thread(lambda: os.sched_getaffinity(0))

    assert in_a_thread(act) == ("", {CORES[0]}, {CORES[0]})
    assert sorted(os.sched_getaffinity(0)) == CORES


def test_without_cores_a_thread_keeps_its_own():
    assert in_a_thread(lambda: (bind_thread((), None), sorted(os.sched_getaffinity(0)))) == (
        "",
        CORES,
    )


def test_unavailable_cores_are_reported():
    assert in_a_thread(lambda: bind_thread([1023], None)).startswith(
        "Unable to set NUMA thread affinity: "
    )


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
        failure = bind_process(CORES[:1], None)
        over.set()
        thread.join()
        os._exit(
            0 if (failure, found, os.sched_getaffinity(0)) == ("", [{CORES[0]}], {CORES[0]}) else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Kernel:
    """Replaces the C library and records the system calls."""

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


def test_a_refusal_of_the_kernel_is_reported(kernel, monkeypatch):
    kernel.result = -1
    monkeypatch.setattr(host_binding.ctypes, "get_errno", lambda: 1)
    assert bind_thread((), 0) == "Unable to set NUMA memory policy: Operation not permitted"


def test_an_unknown_machine_type_is_reported(kernel, monkeypatch):
    monkeypatch.setattr(host_binding.platform, "machine", lambda: "abacus")
    assert (
        bind_thread((), 0) == "unable to set the NUMA memory policy: unknown system call on abacus"
    )


def test_the_real_call_works_or_reports_why():
    assert in_a_thread(lambda: bind_thread((), 0)) in {
        "",
        "Unable to set NUMA memory policy: Operation not permitted",
        "Unable to set NUMA memory policy: Function not implemented",
    }
