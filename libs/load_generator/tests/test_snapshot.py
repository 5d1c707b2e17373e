from __future__ import annotations

import pytest

from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot, join_consecutive, join_parallel


def snapshot(begin, end, *latencies, **more):
    return Snapshot(
        begin_ns=begin,
        end_ns=end,
        latency=make_histogram(latencies),
        succeeded=len(latencies),
        started=len(latencies),
        **more,
    )


def test_parallel_snapshots_add_up_and_keep_the_worst_values():
    both = join_parallel(
        [
            snapshot(
                0, 10, 1, 2, errors={"a": 1}, busiest=0.5, in_flight=2, oldest_ns=7, finished=True
            ),
            snapshot(
                1,
                12,
                3,
                errors={"a": 2, "b": 1},
                busiest=0.9,
                starved=0.2,
                in_flight=1,
                oldest_ns=9,
                unsent=4,
            ),
        ]
    )
    assert (both.begin_ns, both.end_ns, both.succeeded, both.failed) == (0, 12, 3, 4)
    assert both.errors == {"a": 3, "b": 1}
    assert both.latency == make_histogram([1, 2, 3])
    assert (both.busiest, both.starved, both.in_flight, both.oldest_ns, both.unsent) == (
        0.9,
        0.2,
        3,
        9,
        4,
    )
    assert not both.finished


def test_consecutive_snapshots_add_up_and_keep_the_last_state():
    whole = join_consecutive(
        [
            snapshot(0, 1_000_000_000, 5, busiest=0.2, in_flight=9, unsent=3, cpu_ns=10),
            snapshot(
                1_000_000_000, 4_000_000_000, 6, busiest=0.6, in_flight=1, finished=True, cpu_ns=5
            ),
        ]
    )
    assert (whole.seconds, whole.succeeded, whole.cpu_ns) == (4.0, 2, 15)
    assert (whole.in_flight, whole.unsent, whole.finished) == (1, 0, True)
    assert whole.busiest == pytest.approx(0.5)  # weighed by time
