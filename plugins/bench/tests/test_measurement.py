from __future__ import annotations

import asyncio

import msgspec
import pytest

from tritonpy import StartupError
from tritonpy_bench.level_summary import make_level_result
from tritonpy_bench.measurement import GRACE_S, INTERRUPTED_GRACE_S, LevelMeasurement
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.options import LoadLevel

from .results import options

S = 1_000_000_000


class FakeLoad:
    """Returns the given snapshots in order, then the last one again."""

    def __init__(self, *snapshots, after=None):
        self.snapshots = list(snapshots)
        self.calls = []
        self._after = after or (lambda count: None)
        self._count = 0

    async def start(self, level):
        self.calls.append(("start", level))

    async def take_snapshot(self):
        self._count += 1
        self._after(self._count)
        snapshot = self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]
        return msgspec.structs.replace(
            snapshot, begin_ns=self._count * S, end_ns=(self._count + 1) * S
        )

    async def stop(self, grace_s):
        self.calls.append(("stop", grace_s))


def snapshot(succeeded=10, latency=5_000_000, **more):
    return Snapshot(
        begin_ns=0, end_ns=S, latency=make_histogram([latency] * succeeded), service=make_histogram([latency] * succeeded),
        succeeded=succeeded, started=succeeded, **more,
    )  # fmt: skip


def measured(load, interrupted=None, reported=None, read=lambda: None, **more):
    """Measure level 4 with windows of one snapshot and almost no duration."""
    given = options(measurement_interval=1.0, **more)
    seen = [] if reported is None else reported

    async def main():
        event = asyncio.Event()
        if interrupted is not None:
            interrupted.append(event)
        measurement = LevelMeasurement(
            given, load, read, lambda window, snapshot: seen.append(window), event
        )
        return await measurement.level(4)

    found = asyncio.run(main())
    return found, make_level_result(found, given, 2)


def test_windows_follow_each_other_until_they_agree():
    load, reported = FakeLoad(snapshot(10), snapshot(50), snapshot(10)), []
    found, result = measured(load, reported=reported)
    assert reported == [1, 2, 3, 4, 5]
    assert (result.windows, result.stable, result.requests) == (5, True, 30)  # the last three
    assert result.requests_per_s == 10
    assert result.inferences_per_s == 20
    assert load.calls == [("start", LoadLevel(4)), ("stop", GRACE_S)]
    assert len(result.timeline) == len(found.snapshots) == 5


def test_windows_that_never_agree_end_with_the_last_trial():
    _, result = measured(FakeLoad(*[snapshot(10), snapshot(50)] * 9), max_trials=6)
    assert (result.windows, result.stable) == (6, False)


def test_the_warm_up_is_not_a_window():
    warming = snapshot(0, warming=True)
    reported = []
    _, result = measured(FakeLoad(warming, warming, snapshot(10)), reported=reported)
    assert reported == [
        0,
        0,
        1,
        2,
        3,
    ]  # the snapshot that ended the warm-up belongs to the first window
    assert result.requests == 30


def test_an_interruption_keeps_the_results_and_shortens_the_grace_period():
    events = []
    load = FakeLoad(snapshot(10), after=lambda count: count == 2 and events[0].set())
    _, result = measured(load, interrupted=events)
    assert (result.interrupted, result.requests, result.windows) == (True, 20, 2)
    assert load.calls[-1] == ("stop", INTERRUPTED_GRACE_S)


def test_a_failed_load_is_stopped():
    def broken(count):
        raise StartupError("a client process ended: killed")

    load = FakeLoad(snapshot(), after=broken)
    with pytest.raises(StartupError, match="killed"):
        measured(load)
    assert load.calls[-1] == ("stop", GRACE_S)


def test_server_statistics_cover_the_counted_windows():
    counters = iter(range(0, 1000, 10))

    def read():
        return {"m": [{"inference_count": next(counters), "execution_count": 0}]}

    _, result = measured(FakeLoad(snapshot(10), snapshot(50), snapshot(10)), read=read)
    assert result.server[0].inferences == 30


def test_a_threshold_applies_to_the_chosen_percentile():
    mixed = Snapshot(
        begin_ns=0,
        end_ns=S,
        latency=make_histogram([1_000_000] * 90 + [9_000_000] * 10),
        succeeded=100,
        started=100,
    )
    for percentile, watched, kept in ((None, 1800, True), (50, 1000, True), (99, 9000, False)):
        _, result = measured(FakeLoad(mixed), percentile=percentile, latency_threshold=5.0)
        assert result.watched == pytest.approx(watched, rel=1e-3)
        assert result.kept == kept


def test_a_level_without_success_is_not_kept():
    _, result = measured(FakeLoad(snapshot(0, errors={"no": 4})))
    assert (result.kept, result.windows, result.failed) == (False, 1, 4)


def test_unanswered_requests_are_reported():
    _, result = measured(FakeLoad(snapshot(10, in_flight=3, unsent=2, oldest_ns=7 * S)))
    assert result.complaints == (
        "5 requests had no response at the end, the oldest for 7.0 s, longer than any measured latency: the latencies exclude them",
    )
    _, result = measured(FakeLoad(snapshot(10, in_flight=3, oldest_ns=S // 2)))
    assert result.complaints == ()
