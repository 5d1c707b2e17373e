from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from core.tests.runners.workers.backend_process.wire import PATIENCE_S, Wire, eventually
from tritonpy.ipc import Kind
from tritonpy.ipc.waiter import Waiter
from tritonpy.runners.workers.backend_process.deputy import Deputy


class Bench:
    """A deputy, and what it reads. The test is the main thread."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.overdue = Event()
        self.read = Event()
        self.awaited = False
        wire.channel.on(Kind.CANCEL, lambda _: self.read.set())
        self.deputy = Deputy(wire.channel, self.overdue.set, lambda: self.awaited)


@pytest.fixture
def bench() -> Iterator[Bench]:
    wire = Wire()
    bench = Bench(wire)
    yield bench
    # Let the deputy go: it ends its turn with the next frame, and sleeps.
    bench.deputy.end()
    bench.awaited = False
    if wire.channel.has_leader():
        wire.send(Kind.CANCEL, [1])
        eventually(lambda: not wire.channel.has_leader())


def test_it_reads_during_a_long_execution_and_says_that_it_is_long(bench: Bench) -> None:
    bench.deputy.begin()
    bench.wire.send(Kind.CANCEL, [1])
    assert bench.read.wait(PATIENCE_S)
    assert bench.overdue.is_set()


def test_it_reads_at_once_for_what_is_awaited(bench: Bench) -> None:
    bench.deputy.begin()
    assert bench.overdue.wait(PATIENCE_S)
    bench.awaited = True
    bench.deputy.wake()
    bench.wire.send(Kind.CANCEL, [1])
    assert bench.read.wait(PATIENCE_S)


def test_it_leaves_the_reading_to_the_main_thread_that_waits(bench: Bench) -> None:
    bench.deputy.begin()
    assert bench.overdue.wait(PATIENCE_S)
    bench.deputy.end()
    bench.wire.send(Kind.CANCEL, [1])
    bench.wire.channel.wait(Waiter(), bench.read.is_set)
    eventually(lambda: not bench.wire.channel.has_leader())
    bench.read.clear()
    bench.wire.send(Kind.CANCEL, [2])
    bench.wire.channel.wait(Waiter(), bench.read.is_set)  # the main thread reads itself
    assert not bench.wire.channel.has_leader()


def test_it_is_busy_between_begin_and_end(bench: Bench) -> None:
    assert not bench.deputy.busy
    bench.deputy.begin()
    assert bench.deputy.busy
    bench.deputy.end()
    assert not bench.deputy.busy
