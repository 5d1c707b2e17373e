from __future__ import annotations

from tritonpy_load_generator.loops.exchange import Exchange
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.loops.process_clocks import ProcessClocks
from tritonpy_load_generator.loops.request_recorder import RequestRecorder

MS = 1_000_000


class Clocks:
    def __init__(self):
        self.wall = self.cpu = self.starved = 0
        self.recorder = RequestRecorder(
            lambda: self.wall, lambda: ProcessClocks(self.cpu, self.starved), since=5 * MS
        )

    def exchange(self, intended, noticed=None, sent=None, counted=True):
        found = Exchange(Job(0), intended, noticed or intended, sent or intended, counted)
        self.recorder.request_started(found)
        return found


def test_each_snapshot_starts_where_the_previous_one_ended():
    clocks = Clocks()
    clocks.wall, clocks.cpu, clocks.starved = 15 * MS, 4 * MS, MS
    first = clocks.recorder.take_snapshot(warming=False, finished=False)
    assert (first.begin_ns, first.end_ns, first.cpu_ns, first.busiest, first.starved) == (
        5 * MS, 15 * MS, 4 * MS, 0.4, 0.1,
    )  # fmt: skip
    clocks.wall = 16 * MS
    second = clocks.recorder.take_snapshot(warming=False, finished=False)
    assert (second.begin_ns, second.end_ns, second.cpu_ns) == (15 * MS, 16 * MS, 0)


def test_kinds_of_durations_are_recorded_separately():
    clocks = Clocks()
    exchange = clocks.exchange(10 * MS, noticed=12 * MS, sent=15 * MS)
    clocks.wall = 20 * MS
    clocks.recorder.request_ended(exchange, None)
    seen = clocks.recorder.take_snapshot(warming=False, finished=False)
    found = [each.most // MS for each in (seen.latency, seen.service, seen.late, seen.waited)]
    assert found == [10, 5, 2, 3]


def test_responses_of_a_stream_are_distinguished():
    clocks = Clocks()
    exchange = clocks.exchange(0)
    for at in (3, 4, 9):
        exchange.add_response(at * MS)
    clocks.wall = 10 * MS
    clocks.recorder.request_ended(exchange, None)
    seen = clocks.recorder.take_snapshot(warming=False, finished=False)
    assert seen.responses == 3
    assert (seen.first.most, seen.between.sum, seen.between.total) == (3 * MS, 6 * MS, 2)


def test_the_time_of_the_warm_up_is_not_part_of_the_span():
    clocks = Clocks()
    warming = clocks.exchange(6 * MS, counted=False)
    clocks.recorder.request_ended(warming, "an error of the warm-up")
    clocks.exchange(8 * MS)
    clocks.wall = 9 * MS
    seen = clocks.recorder.take_snapshot(warming=False, finished=False)
    assert (seen.begin_ns, seen.started, seen.failed) == (8 * MS, 1, 0)


def test_a_finished_span_ends_with_its_last_request():
    clocks = Clocks()
    exchange = clocks.exchange(6 * MS)
    clocks.wall = 7 * MS
    clocks.recorder.request_ended(exchange, None)
    clocks.wall = 100 * MS
    assert clocks.recorder.take_snapshot(warming=False, finished=True).end_ns == 7 * MS


def test_the_number_of_error_texts_is_bounded():
    clocks = Clocks()
    for number in range(500):
        clocks.recorder.request_ended(clocks.exchange(0), f"error {number}")
    seen = clocks.recorder.take_snapshot(warming=False, finished=False)
    assert seen.failed == 500
    assert len(seen.errors) == 101
    assert seen.errors["other errors"] == 400
