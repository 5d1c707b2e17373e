from __future__ import annotations

from itertools import count, islice, repeat

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.loops.arrivals import constant_arrivals
from tritonpy_load_generator.loops.exchange import LostConnection
from tritonpy_load_generator.loops.jobs import PlainJobSource, SequenceJobSource
from tritonpy_load_generator.loops.loop import RequestBudget
from tritonpy_load_generator.loops.open_loop import OpenLoop

from .fake_load import LoopHarness

MS = 1_000_000


def opened(harness, arrivals, budget=None, jobs=None):
    time = harness.time
    loop = OpenLoop(
        harness.senders, jobs or PlainJobSource(1), harness.recorder, budget or RequestBudget(), time.clock, time.later,
        arrivals=arrivals, begin_ns=0, wake_at=time.at,
    )  # fmt: skip
    loop.start()
    return loop


def test_a_stall_counts_for_every_waiting_request():
    """Coordinated omission: a request per millisecond, one connection, a server that stalls for 10 ms.

    A client that counts only requests in flight sees one slow request. The ten due meanwhile are slow, too.
    """
    harness = LoopHarness(1)
    opened(harness, constant_arrivals(1000))
    sender = harness.senders[0]
    harness.time.advance(10 * MS)  # eleven requests were due by now, at 0, 1, … 10 ms
    assert len(harness.sent) == 1
    for _ in range(11):
        sender.respond()
    seen = harness.take_snapshot()
    assert (seen.started, seen.succeeded) == (11, 11)
    assert seen.latency.sum == sum(range(11)) * MS  # 10 ms, 9 ms, … 0 ms
    assert (seen.service.sum, seen.service.most) == (
        10 * MS,
        10 * MS,
    )  # as that client would measure
    assert seen.waited.sum == sum(range(10)) * MS
    assert seen.late.most == 0  # the generator itself was in time


def test_requests_wait_in_the_order_in_which_they_were_due():
    harness = LoopHarness(2)
    opened(harness, constant_arrivals(1000))
    harness.time.advance(5 * MS)
    intended = [sender.exchange.intended for sender in harness.sent]
    for _ in range(4):
        harness.busy[0].respond()
        intended.append(harness.sent[-1].exchange.intended)
    assert intended == [number * MS for number in range(6)]


def test_late_wake_ups_of_the_generator_are_recorded():
    harness = LoopHarness(8)
    opened(harness, iter([0, MS, 2 * MS, 100 * MS]))
    harness.time.now = 7 * MS  # the timer did not fire at 1 and 2 ms
    harness.time.advance(7 * MS)
    while harness.busy:
        harness.busy[0].respond()
    seen = harness.take_snapshot()
    assert seen.late.most == 6 * MS
    assert seen.waited.most == 0
    assert seen.latency.most == 7 * MS


def test_unsent_requests_are_reported_with_their_age():
    harness = LoopHarness(1)
    opened(harness, constant_arrivals(1000))
    harness.time.advance(9 * MS)
    seen = harness.take_snapshot()
    assert (seen.in_flight, seen.unsent, seen.oldest_ns) == (1, 9, 9 * MS)
    harness.senders[0].respond()
    assert harness.take_snapshot().oldest_ns == 8 * MS


@given(
    st.integers(1, 5),
    st.integers(0, 10),
    st.integers(1, 30),
    st.lists(st.integers(0, 4), max_size=80),
)
def test_a_budget_is_exact_for_every_order_of_responses(senders, warmup, limit, responses):
    harness = LoopHarness(senders)
    loop = opened(harness, constant_arrivals(1000), RequestBudget(warmup, limit))
    for number, which in enumerate(responses):
        harness.time.advance(number * MS)
        if harness.busy:
            harness.busy[which % len(harness.busy)].respond()
    harness.time.advance((warmup + limit + 100) * MS)
    while harness.busy:
        assert not loop.finished
        harness.busy[0].respond()
    assert loop.finished
    assert len(harness.sent) == warmup + limit
    assert harness.take_snapshot().succeeded == limit


@given(
    st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(0, 5)), min_size=1, max_size=60),
    st.integers(1, 4),
)
def test_no_latency_is_shorter_than_the_time_since_the_request_was_due(steps, senders):
    harness = LoopHarness(senders)
    opened(harness, constant_arrivals(1000))
    intended = []
    for pause, which in steps:
        harness.time.advance(harness.time.now + pause)
        if harness.busy:
            sender = harness.busy[which % len(harness.busy)]
            intended.append(harness.time.now - sender.exchange.intended)
            sender.respond()
    assert harness.take_snapshot().latency.sum == sum(intended)
    started = [exchange.intended for exchange in (sender.exchange for sender in harness.busy)]
    assert all(at in set(islice(constant_arrivals(1000), 1000)) for at in started)


def test_sequences_keep_one_request_in_flight_each_and_their_order():
    harness = LoopHarness(2)
    opened(harness, constant_arrivals(1000), jobs=SequenceJobSource([[0]], repeat(3), count(1)))
    harness.time.advance(10 * MS)
    assert [sender.exchange.job.sequence for sender in harness.busy] == [1, 2]
    assert all(sender.exchange.job.start for sender in harness.busy)
    harness.senders[0].respond()
    assert (harness.senders[0].exchange.job.sequence, harness.senders[0].exchange.job.start) == (
        1,
        False,
    )


def test_stopping_drops_waiting_requests_and_ends_open_sequences():
    harness, stopped = LoopHarness(2), []
    loop = opened(
        harness,
        iter([0, MS, 2 * MS, 500 * MS, 900 * MS]),
        jobs=SequenceJobSource([[0]], repeat(3), count(1)),
    )
    harness.time.advance(2 * MS)
    harness.senders[0].respond()  # sends the third request, which waited
    harness.senders[1].respond()  # is idle now, with a sequence open
    loop.stop(lambda: stopped.append(True))
    assert harness.senders[1].exchange.job.end
    while harness.busy:
        assert not stopped
        harness.busy[0].respond()
    assert stopped == [True]
    harness.time.advance(1000 * MS)
    assert not harness.busy


def test_other_senders_continue_while_one_pauses():
    harness = LoopHarness(2)
    opened(harness, constant_arrivals(1000))
    first = harness.sent[0]
    first.respond(LostConnection("gone"))
    harness.time.advance(3 * MS)
    assert harness.busy == [sender for sender in harness.senders if sender is not first]
