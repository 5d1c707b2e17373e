from __future__ import annotations

import pytest

from tritonpy_workers.prefetch_depth import PrefetchDepth


def test_the_initial_depth_is_one():
    assert PrefetchDepth(prefetch=True).depth == 1


@pytest.mark.parametrize(
    ("ns", "depth"),
    [(0, 32), (1, 32), (10_000, 32), (50_000, 10), (100_000, 5), (500_000, 1), (10_000_000, 1)],
)
def test_the_depth_covers_the_horizon(ns, depth):
    prefetch_depth = PrefetchDepth(prefetch=True)
    prefetch_depth.record(ns)
    assert prefetch_depth.depth == depth


def test_a_batch_that_may_grow_is_never_prefetched():
    prefetch_depth = PrefetchDepth(prefetch=False)
    prefetch_depth.record(1)
    assert prefetch_depth.depth == 1


def test_one_outlier_changes_the_depth_little():
    prefetch_depth = PrefetchDepth(prefetch=True)
    for _ in range(20):
        prefetch_depth.record(50_000)
    prefetch_depth.record(100_000)
    assert prefetch_depth.depth == 8
    for _ in range(30):
        prefetch_depth.record(10_000_000)
    assert prefetch_depth.depth == 1


def test_a_clock_that_runs_backwards_breaks_nothing():
    prefetch_depth = PrefetchDepth(prefetch=True)
    prefetch_depth.record(-5_000_000)
    assert prefetch_depth.depth == 32


@pytest.mark.parametrize(
    ("ns", "depth"), [(50_000, 10), (1_000_000, 2), (9_000_000, 2), (10_000_000, 1)]
)
def test_an_only_instance_prefetches_one_short_execution(ns, depth):
    prefetch_depth = PrefetchDepth(prefetch=True, is_only_instance=True)
    assert prefetch_depth.depth == 1
    prefetch_depth.record(ns)
    assert prefetch_depth.depth == depth


@pytest.mark.parametrize(
    ("waiting", "idle", "share"),
    [(9, 0, 10), (1, 1, 1), (2, 1, 1), (3, 1, 2), (9, 2, 3), (99, 1, 10), (0, 3, 1)],
)
def test_waiting_requests_are_shared_with_idle_instances(waiting, idle, share):
    prefetch_depth = PrefetchDepth(prefetch=True)
    prefetch_depth.record(50_000)
    assert prefetch_depth.share(waiting, idle) == share
