from __future__ import annotations

import asyncio

import msgspec
import pytest

from tritonpy import StartupError
from tritonpy_bench.figures.histogram import histogram
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.measuring import GRACE_S, HURRIED_S, Measuring
from tritonpy_bench.summing_up import level_result

from .facts import options

S = 1_000_000_000


class FakeLoad:
    """Gives the looks that a test wrote down; what is asked beyond is the last one again."""

    def __init__(self, *looks, after=None):
        self.looks = list(looks)
        self.calls = []
        self._after = after or (lambda count: None)
        self._count = 0

    async def start(self, level):
        self.calls.append(("start", level))

    async def look(self):
        self._count += 1
        self._after(self._count)
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return msgspec.structs.replace(look, begin_ns=self._count * S, end_ns=(self._count + 1) * S)

    async def stop(self, grace_s):
        self.calls.append(("stop", grace_s))


def look(succeeded=10, latency=5_000_000, **more):
    return Snapshot(
        begin_ns=0, end_ns=S, latency=histogram([latency] * succeeded), service=histogram([latency] * succeeded),
        succeeded=succeeded, started=succeeded, **more,
    )  # fmt: skip


def measured(load, interrupted=None, told=None, read=lambda: None, **more):
    """Measure level 4 with windows of one look that take next to no time."""
    asked = options(measurement_interval=1.0, **more)
    seen = [] if told is None else told

    async def main():
        event = asyncio.Event()
        if interrupted is not None:
            interrupted.append(event)
        measuring = Measuring(asked, load, read, lambda window, look: seen.append(window), event)
        return await measuring.level(4)

    found = asyncio.run(main())
    return found, level_result(found, asked, 2)


def test_windows_follow_each_other_until_they_agree():
    load, told = FakeLoad(look(10), look(50), look(10)), []
    found, result = measured(load, told=told)
    assert told == [1, 2, 3, 4, 5]
    assert (result.windows, result.stable, result.requests) == (5, True, 30)  # the last three
    assert result.requests_per_s == 10
    assert result.inferences_per_s == 20
    assert load.calls == [("start", 4), ("stop", GRACE_S)]
    assert len(result.timeline) == len(found.looks) == 5


def test_windows_that_never_agree_end_with_the_last_trial():
    _, result = measured(FakeLoad(*[look(10), look(50)] * 9), max_trials=6)
    assert (result.windows, result.stable) == (6, False)


def test_what_warms_up_is_no_window():
    warming = look(0, warming=True)
    told = []
    _, result = measured(FakeLoad(warming, warming, look(10)), told=told)
    assert told == [0, 0, 1, 2, 3]  # the look that ended the warm-up is the first window's
    assert result.requests == 30


def test_an_interruption_keeps_what_was_measured_and_hurries():
    events = []
    load = FakeLoad(look(10), after=lambda count: count == 2 and events[0].set())
    _, result = measured(load, interrupted=events)
    assert (result.interrupted, result.requests, result.windows) == (True, 20, 2)
    assert load.calls[-1] == ("stop", HURRIED_S)


def test_a_load_that_breaks_is_ended_all_the_same():
    def broken(count):
        raise StartupError("a client process ended: killed")

    load = FakeLoad(look(), after=broken)
    with pytest.raises(StartupError, match="killed"):
        measured(load)
    assert load.calls[-1] == ("stop", GRACE_S)


def test_the_servers_part_is_of_the_windows_that_count():
    counters = iter(range(0, 1000, 10))

    def read():
        return {"m": [{"inference_count": next(counters), "execution_count": 0}]}

    _, result = measured(FakeLoad(look(10), look(50), look(10)), read=read)
    assert result.server[0].inferences == 30


def test_a_threshold_looks_at_the_chosen_latency():
    mixed = Snapshot(
        begin_ns=0, end_ns=S, latency=histogram([1_000_000] * 90 + [9_000_000] * 10), succeeded=100, started=100
    )
    for percentile, watched, kept in ((None, 1800, True), (50, 1000, True), (99, 9000, False)):
        _, result = measured(FakeLoad(mixed), percentile=percentile, latency_threshold=5.0)
        assert result.watched == pytest.approx(watched, rel=1e-3)
        assert result.kept == kept


def test_a_level_without_success_is_not_kept():
    _, result = measured(FakeLoad(look(0, errors={"no": 4})))
    assert (result.kept, result.windows, result.failed) == (False, 1, 4)


def test_requests_that_nobody_answers_are_not_left_out_in_silence():
    _, result = measured(FakeLoad(look(10, in_flight=3, unsent=2, oldest_ns=7 * S)))
    assert result.complaints == (
        "5 requests were unanswered at the end, the oldest for 7.0 s, longer than any that was answered: the latencies leave them out",
    )
    _, result = measured(FakeLoad(look(10, in_flight=3, oldest_ns=S // 2)))
    assert result.complaints == ()
