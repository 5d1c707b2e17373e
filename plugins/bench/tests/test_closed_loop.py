from __future__ import annotations

from itertools import count, repeat

from tritonpy_bench.load.closed_loop import ClosedLoop
from tritonpy_bench.load.exchange import Lost
from tritonpy_bench.load.jobs import PlainJobs, SequenceJobs
from tritonpy_bench.load.loop import Budget

from .fake_load import World

MS = 1_000_000


def closed(world, budget=None, jobs=None):
    loop = ClosedLoop(
        world.carriers, jobs or PlainJobs(1), world.ledger, budget or Budget(), world.time.clock, world.time.later
    )
    loop.start()
    return loop


def test_as_many_requests_are_in_flight_as_there_are_carriers():
    world = World(3)
    closed(world)
    assert len(world.busy) == 3
    world.carriers[1].answer()
    assert len(world.busy) == 3
    assert [carrier.number for carrier in world.sent] == [0, 1, 2, 1]


def test_a_latency_begins_when_the_request_is_sent():
    world = World(1)
    closed(world)
    world.time.now = 5 * MS
    world.carriers[0].answer()
    world.time.now = 6 * MS
    world.carriers[0].answer()
    seen = world.take()
    assert (seen.latency.least, seen.latency.most, seen.latency.total) == (MS, 5 * MS, 2)
    assert seen.late.most == seen.waited.most == 0


def test_a_budget_is_kept_to_the_request_and_its_warm_up_is_not_counted():
    world = World(4)
    loop = closed(world, Budget(warmup=3, limit=5))
    assert loop.warming
    while world.busy:
        world.busy[0].answer()
    assert len(world.sent) == 8
    assert loop.finished
    assert not loop.warming
    assert world.take().succeeded == 5


def test_errors_are_counted_by_their_text_and_have_no_latency():
    world = World(1)
    closed(world)
    for text in ("a", "b", "a", None):
        world.carriers[0].answer(text)
    seen = world.take()
    assert (seen.errors, seen.succeeded, seen.failed, seen.latency.total) == ({"a": 2, "b": 1}, 1, 3, 1)


def test_a_place_that_lost_its_connection_rests():
    world = World(2)
    closed(world)
    world.carriers[0].answer(Lost("gone"))
    assert [carrier.number for carrier in world.busy] == [1]
    world.time.advance(100 * MS)
    assert len(world.busy) == 2


def test_stopping_ends_open_sequences_then_tells():
    world, told = World(2), []
    loop = closed(world, jobs=SequenceJobs([[0]], repeat(5), count(1)))
    loop.stop(lambda: told.append(len(world.sent)))
    for carrier in world.carriers:
        carrier.answer()
    assert [carrier.exchange.job.end for carrier in world.carriers] == [True, True]
    assert told == []
    for carrier in world.carriers:
        carrier.answer()
    assert told == [4]
    assert world.take().succeeded == 2  # what only ends a sequence is not counted


def test_stopping_with_nothing_in_flight_tells_at_once():
    world, told = World(1), []
    loop = closed(world, Budget(limit=1))
    world.carriers[0].answer()
    loop.stop(lambda: told.append(True))
    assert told == [True]
