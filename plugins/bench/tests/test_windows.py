from __future__ import annotations

from tritonpy_bench.figures.histogram import histogram
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.windows import is_stable, level_over, plan, window_over


def look(succeeded=1, errors=0, finished=False):
    return Snapshot(
        begin_ns=0, end_ns=1_000_000_000, latency=histogram([5] * succeeded), succeeded=succeeded,
        errors={"e": errors} if errors else {}, finished=finished,
    )  # fmt: skip


def options(**more):
    return BenchOptions(model="m", **{"measurement_interval": 2000.0, **more})


def test_a_window_of_time_ends_with_its_last_look():
    assert plan(options()).looks == 4
    assert plan(options()).look_s == 0.5
    assert plan(options(measurement_interval=10.0)).looks == 1
    assert not window_over(options(), [look()] * 3)
    assert window_over(options(), [look()] * 4)


def test_a_window_of_requests_waits_for_them_but_not_for_ever():
    counting = options(measurement_mode="count_windows", measurement_request_count=10)
    assert not window_over(counting, [look(2)] * 4)
    assert window_over(counting, [look(2, errors=1)] * 4)
    assert not window_over(counting, [look(0)] * 39)
    assert window_over(counting, [look(0)] * 40)


def test_a_number_of_requests_is_one_window_however_long():
    some = options(request_count=5)
    assert not window_over(some, [look()] * 1000)
    assert window_over(some, [look(finished=True)])
    assert level_over(some, [look(finished=True)])


def test_a_level_is_over_when_its_windows_agree_or_there_were_enough_of_them():
    assert not level_over(options(), [look()] * 2)
    assert level_over(options(), [look()] * 3)
    uneven = [look(1), look(100)] * 5
    assert not level_over(options(), uneven[:9])
    assert level_over(options(), uneven)
    assert not is_stable(options(), uneven)


def test_a_level_on_which_everything_fails_is_not_tried_again():
    assert level_over(options(), [look(0, errors=3)])
    assert not level_over(options(), [look(1, errors=3)])
    assert not level_over(options(), [look(0)])
