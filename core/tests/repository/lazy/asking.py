"""What several of these tests ask of a server, and how they wait."""

from __future__ import annotations

import threading

from tritonpy.errors import Unavailable

from ...toys.hoard import hoarding
from ...toys.serving import ask


def error_in(witness, request):
    (answers,) = witness.wait(request, timeout_s=20)
    assert answers[-1].error is not None
    return answers[-1].error


def one_mib(repository, *names, **values):
    for name in names:
        repository.add(name, hoarding(memory_bytes="1MiB", **values))


def ask_again(server, witness, name, value=1):
    """Ask as soon as a failed load may be tried again."""
    while True:
        try:
            return ask(server.engine, witness, name, [value])
        except Unavailable:
            continue


def wait_for(condition):
    ready = threading.Event()
    for _ in range(2000):
        if condition():
            return
        ready.wait(0.01)
    raise AssertionError("it never came true")
