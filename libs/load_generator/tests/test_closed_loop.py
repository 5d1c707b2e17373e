from __future__ import annotations

from itertools import count, repeat

from tritonpy_load_generator.loops.closed_loop import ClosedLoop
from tritonpy_load_generator.loops.exchange import LostConnection
from tritonpy_load_generator.loops.jobs import PlainJobSource, SequenceJobSource
from tritonpy_load_generator.loops.loop import RequestBudget

from .fake_load import LoopHarness

MS = 1_000_000


def closed(harness, budget=None, jobs=None):
    loop = ClosedLoop(
        harness.senders,
        jobs or PlainJobSource(1),
        harness.recorder,
        budget or RequestBudget(),
        harness.time.clock,
        harness.time.later,
    )
    loop.start()
    return loop


def test_every_sender_has_a_request_in_flight():
    harness = LoopHarness(3)
    closed(harness)
    assert len(harness.busy) == 3
    harness.senders[1].respond()
    assert len(harness.busy) == 3
    assert [sender.number for sender in harness.sent] == [0, 1, 2, 1]


def test_latency_counts_from_sending():
    harness = LoopHarness(1)
    closed(harness)
    harness.time.now = 5 * MS
    harness.senders[0].respond()
    harness.time.now = 6 * MS
    harness.senders[0].respond()
    seen = harness.take_snapshot()
    assert (seen.latency.least, seen.latency.most, seen.latency.total) == (MS, 5 * MS, 2)
    assert seen.late.most == seen.waited.most == 0


def test_a_budget_is_exact_and_excludes_the_warm_up():
    harness = LoopHarness(4)
    loop = closed(harness, RequestBudget(warmup=3, limit=5))
    assert loop.warming
    while harness.busy:
        harness.busy[0].respond()
    assert len(harness.sent) == 8
    assert loop.finished
    assert not loop.warming
    assert harness.take_snapshot().succeeded == 5


def test_errors_are_counted_by_their_text_and_have_no_latency():
    harness = LoopHarness(1)
    closed(harness)
    for text in ("a", "b", "a", None):
        harness.senders[0].respond(text)
    seen = harness.take_snapshot()
    assert (seen.errors, seen.succeeded, seen.failed, seen.latency.total) == (
        {"a": 2, "b": 1},
        1,
        3,
        1,
    )


def test_a_slot_pauses_after_it_lost_its_connection():
    harness = LoopHarness(2)
    closed(harness)
    harness.senders[0].respond(LostConnection("gone"))
    assert [sender.number for sender in harness.busy] == [1]
    harness.time.advance(100 * MS)
    assert len(harness.busy) == 2


def test_stopping_ends_open_sequences_before_the_callback():
    harness, stopped = LoopHarness(2), []
    loop = closed(harness, jobs=SequenceJobSource([[0]], repeat(5), count(1)))
    loop.stop(lambda: stopped.append(len(harness.sent)))
    for sender in harness.senders:
        sender.respond()
    assert [sender.exchange.job.end for sender in harness.senders] == [True, True]
    assert stopped == []
    for sender in harness.senders:
        sender.respond()
    assert stopped == [4]
    assert harness.take_snapshot().succeeded == 2  # what only ends a sequence is not counted


def test_stopping_with_nothing_in_flight_calls_back_immediately():
    harness, stopped = LoopHarness(1), []
    loop = closed(harness, RequestBudget(limit=1))
    harness.senders[0].respond()
    loop.stop(lambda: stopped.append(True))
    assert stopped == [True]
