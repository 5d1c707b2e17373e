from __future__ import annotations

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.windows import is_level_complete, is_stable, is_window_complete, plan
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot


def snapshot(succeeded=1, errors=0, finished=False):
    return Snapshot(
        begin_ns=0, end_ns=1_000_000_000, latency=make_histogram([5] * succeeded), succeeded=succeeded,
        errors={"e": errors} if errors else {}, finished=finished,
    )  # fmt: skip


def options(**more):
    return BenchOptions(model="m", **{"measurement_interval": 2000.0, **more})


def test_a_time_window_ends_with_its_last_snapshot():
    assert plan(options()).snapshots == 4
    assert plan(options()).interval_s == 0.5
    assert plan(options(measurement_interval=10.0)).snapshots == 1
    assert not is_window_complete(options(), [snapshot()] * 3)
    assert is_window_complete(options(), [snapshot()] * 4)


def test_a_count_window_waits_for_requests_within_a_limit():
    counting = options(measurement_mode="count_windows", measurement_request_count=10)
    assert not is_window_complete(counting, [snapshot(2)] * 4)
    assert is_window_complete(counting, [snapshot(2, errors=1)] * 4)
    assert not is_window_complete(counting, [snapshot(0)] * 39)
    assert is_window_complete(counting, [snapshot(0)] * 40)


def test_a_fixed_request_count_is_one_window():
    some = options(request_count=5)
    assert not is_window_complete(some, [snapshot()] * 1000)
    assert is_window_complete(some, [snapshot(finished=True)])
    assert is_level_complete(some, [snapshot(finished=True)])


def test_a_level_is_complete_when_windows_agree_or_the_maximum_is_reached():
    assert not is_level_complete(options(), [snapshot()] * 2)
    assert is_level_complete(options(), [snapshot()] * 3)
    uneven = [snapshot(1), snapshot(100)] * 5
    assert not is_level_complete(options(), uneven[:9])
    assert is_level_complete(options(), uneven)
    assert not is_stable(options(), uneven)


def test_a_level_with_only_errors_is_complete():
    assert is_level_complete(options(), [snapshot(0, errors=3)])
    assert not is_level_complete(options(), [snapshot(1, errors=3)])
    assert not is_level_complete(options(), [snapshot(0)])
