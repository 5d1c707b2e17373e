from __future__ import annotations

from itertools import count, islice, repeat

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.load.arrivals import constant
from tritonpy_bench.load.exchange import Lost
from tritonpy_bench.load.jobs import PlainJobs, SequenceJobs
from tritonpy_bench.load.loop import Budget
from tritonpy_bench.load.open_loop import OpenLoop

from .fake_load import World

MS = 1_000_000


def opened(world, arrivals, budget=None, jobs=None):
    time = world.time
    loop = OpenLoop(
        world.carriers, jobs or PlainJobs(1), world.ledger, budget or Budget(), time.clock, time.later,
        arrivals=arrivals, begin_ns=0, wake_at=time.at,
    )  # fmt: skip
    loop.start()
    return loop


def test_a_stall_is_charged_to_every_request_that_it_kept_waiting():
    """Coordinated omission: a request a millisecond, one connection, a server that stands still for 10 ms.

    A client that only looks at what was in flight sees one slow request; the ten that were due meanwhile are slow too.
    """
    world = World(1)
    opened(world, constant(1000))
    carrier = world.carriers[0]
    world.time.advance(10 * MS)  # eleven requests were due by now, at 0, 1, … 10 ms
    assert len(world.sent) == 1
    for _ in range(11):
        carrier.answer()
    seen = world.take()
    assert (seen.started, seen.succeeded) == (11, 11)
    assert seen.latency.sum == sum(range(11)) * MS  # 10 ms, 9 ms, … 0 ms
    assert (seen.service.sum, seen.service.most) == (10 * MS, 10 * MS)  # as that client would have it
    assert seen.waited.sum == sum(range(10)) * MS
    assert seen.late.most == 0  # the generator itself was in time


def test_requests_wait_in_the_order_in_which_they_were_due():
    world = World(2)
    opened(world, constant(1000))
    world.time.advance(5 * MS)
    intended = [carrier.exchange.intended for carrier in world.sent]
    for _ in range(4):
        world.busy[0].answer()
        intended.append(world.sent[-1].exchange.intended)
    assert intended == [number * MS for number in range(6)]


def test_a_generator_that_wakes_late_says_so():
    world = World(8)
    opened(world, iter([0, MS, 2 * MS, 100 * MS]))
    world.time.now = 7 * MS  # nobody woke it at 1 and 2 ms
    world.time.advance(7 * MS)
    while world.busy:
        world.busy[0].answer()
    seen = world.take()
    assert seen.late.most == 6 * MS
    assert seen.waited.most == 0
    assert seen.latency.most == 7 * MS


def test_what_was_due_and_not_sent_is_told_with_its_age():
    world = World(1)
    opened(world, constant(1000))
    world.time.advance(9 * MS)
    seen = world.take()
    assert (seen.in_flight, seen.unsent, seen.oldest_ns) == (1, 9, 9 * MS)
    world.carriers[0].answer()
    assert world.take().oldest_ns == 8 * MS


@given(st.integers(1, 5), st.integers(0, 10), st.integers(1, 30), st.lists(st.integers(0, 4), max_size=80))
def test_a_budget_is_kept_whatever_the_answers_do(carriers, warmup, limit, answers):
    world = World(carriers)
    loop = opened(world, constant(1000), Budget(warmup, limit))
    for number, which in enumerate(answers):
        world.time.advance(number * MS)
        if world.busy:
            world.busy[which % len(world.busy)].answer()
    world.time.advance((warmup + limit + 100) * MS)
    while world.busy:
        assert not loop.finished
        world.busy[0].answer()
    assert loop.finished
    assert len(world.sent) == warmup + limit
    assert world.take().succeeded == limit


@given(st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(0, 5)), min_size=1, max_size=60), st.integers(1, 4))
def test_no_latency_is_shorter_than_the_time_since_the_request_was_due(steps, carriers):
    world = World(carriers)
    opened(world, constant(1000))
    intended = []
    for pause, which in steps:
        world.time.advance(world.time.now + pause)
        if world.busy:
            carrier = world.busy[which % len(world.busy)]
            intended.append(world.time.now - carrier.exchange.intended)
            carrier.answer()
    assert world.take().latency.sum == sum(intended)
    started = [exchange.intended for exchange in (carrier.exchange for carrier in world.busy)]
    assert all(at in set(islice(constant(1000), 1000)) for at in started)


def test_sequences_keep_one_request_in_flight_each_and_their_order():
    world = World(2)
    opened(world, constant(1000), jobs=SequenceJobs([[0]], repeat(3), count(1)))
    world.time.advance(10 * MS)
    assert [carrier.exchange.job.sequence for carrier in world.busy] == [1, 2]
    assert all(carrier.exchange.job.start for carrier in world.busy)
    world.carriers[0].answer()
    assert (world.carriers[0].exchange.job.sequence, world.carriers[0].exchange.job.start) == (1, False)


def test_stopping_lets_go_of_what_waits_and_ends_open_sequences():
    world, told = World(2), []
    loop = opened(world, iter([0, MS, 2 * MS, 500 * MS, 900 * MS]), jobs=SequenceJobs([[0]], repeat(3), count(1)))
    world.time.advance(2 * MS)
    world.carriers[0].answer()  # takes the third, which waited
    world.carriers[1].answer()  # is idle now, with a sequence open
    loop.stop(lambda: told.append(True))
    assert world.carriers[1].exchange.job.end
    while world.busy:
        assert not told
        world.busy[0].answer()
    assert told == [True]
    world.time.advance(1000 * MS)
    assert not world.busy


def test_other_carriers_go_on_while_one_rests():
    world = World(2)
    opened(world, constant(1000))
    first = world.sent[0]
    first.answer(Lost("gone"))
    world.time.advance(3 * MS)
    assert world.busy == [carrier for carrier in world.carriers if carrier is not first]
