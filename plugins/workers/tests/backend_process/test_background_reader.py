from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from plugins.workers.tests.backend_process.wire import WAIT_S, Wire, eventually
from tritonpy_ipc import Kind
from tritonpy_ipc.waiter import Waiter
from tritonpy_workers.backend_process.background_reader import BackgroundReader


class Bench:
    """A background reader and its channel; the test is the main thread."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.overdue = Event()
        self.read = Event()
        self.awaited = False
        wire.channel.on(Kind.CANCEL, lambda _: self.read.set())
        self.reader = BackgroundReader(wire.channel, self.overdue.set, lambda: self.awaited)


@pytest.fixture
def bench() -> Iterator[Bench]:
    wire = Wire()
    bench = Bench(wire)
    yield bench
    # Release the reader: it stops leading with the next frame and sleeps.
    bench.reader.end()
    bench.awaited = False
    if wire.channel.has_leader():
        wire.send(Kind.CANCEL, [1])
        eventually(lambda: not wire.channel.has_leader())


def test_it_reads_during_a_long_execution_and_reports_it(bench: Bench) -> None:
    bench.reader.begin()
    bench.wire.send(Kind.CANCEL, [1])
    assert bench.read.wait(WAIT_S)
    assert bench.overdue.is_set()


def test_it_reads_immediately_while_responses_are_awaited(bench: Bench) -> None:
    bench.reader.begin()
    assert bench.overdue.wait(WAIT_S)
    bench.awaited = True
    bench.reader.wake()
    bench.wire.send(Kind.CANCEL, [1])
    assert bench.read.wait(WAIT_S)


def test_it_leaves_the_reading_to_the_main_thread_that_waits(bench: Bench) -> None:
    bench.reader.begin()
    assert bench.overdue.wait(WAIT_S)
    bench.reader.end()
    bench.wire.send(Kind.CANCEL, [1])
    bench.wire.channel.wait(Waiter(), bench.read.is_set)
    eventually(lambda: not bench.wire.channel.has_leader())
    bench.read.clear()
    bench.wire.send(Kind.CANCEL, [2])
    bench.wire.channel.wait(Waiter(), bench.read.is_set)  # the main thread reads itself
    assert not bench.wire.channel.has_leader()


def test_it_is_busy_between_begin_and_end(bench: Bench) -> None:
    assert not bench.reader.busy
    bench.reader.begin()
    assert bench.reader.busy
    bench.reader.end()
    assert not bench.reader.busy
