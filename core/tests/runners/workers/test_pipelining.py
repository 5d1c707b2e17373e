from __future__ import annotations

import pytest

from tritonpy.runners.workers.pipelining import Pipelining


def test_nothing_is_known_of_the_first_execution():
    assert Pipelining(prefetch=True).depth == 1


@pytest.mark.parametrize(
    ("ns", "depth"), [(0, 32), (1, 32), (10_000, 32), (50_000, 10), (100_000, 5), (500_000, 1), (10_000_000, 1)]
)
def test_as_many_are_given_as_end_within_the_horizon(ns, depth):
    pipelining = Pipelining(prefetch=True)
    pipelining.took(ns)
    assert pipelining.depth == depth


def test_a_batch_that_may_grow_is_never_given_early():
    pipelining = Pipelining(prefetch=False)
    pipelining.took(1)
    assert pipelining.depth == 1


def test_one_outlier_does_not_decide():
    pipelining = Pipelining(prefetch=True)
    for _ in range(20):
        pipelining.took(50_000)
    pipelining.took(100_000)
    assert pipelining.depth == 8
    for _ in range(30):
        pipelining.took(10_000_000)
    assert pipelining.depth == 1


def test_a_clock_that_runs_backwards_breaks_nothing():
    pipelining = Pipelining(prefetch=True)
    pipelining.took(-5_000_000)
    assert pipelining.depth == 32


@pytest.mark.parametrize(("ns", "depth"), [(50_000, 10), (1_000_000, 2), (9_000_000, 2), (10_000_000, 1)])
def test_an_instance_without_siblings_has_the_next_one_ready_while_executions_are_short(ns, depth):
    pipelining = Pipelining(prefetch=True, alone=True)
    assert pipelining.depth == 1
    pipelining.took(ns)
    assert pipelining.depth == depth


@pytest.mark.parametrize(
    ("waiting", "spare", "share"), [(9, 0, 10), (1, 1, 1), (2, 1, 1), (3, 1, 2), (9, 2, 3), (99, 1, 10), (0, 3, 1)]
)
def test_what_waits_is_shared_with_those_who_have_nothing_to_do(waiting, spare, share):
    pipelining = Pipelining(prefetch=True)
    pipelining.took(50_000)
    assert pipelining.share(waiting, spare) == share
