from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.scheduling import Pending, Run, Wait
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_protos.model_config_pb2 import ModelConfig

DELAY_NS = 1_000


def plan(sizes, preferred, maximum=8, delay_ns=DELAY_NS, waited_ns=0, closed=False):
    config = ModelConfig(max_batch_size=maximum)
    config.dynamic_batching.preferred_batch_size.extend(preferred)
    config.dynamic_batching.max_queue_delay_microseconds = delay_ns // 1_000
    pending = Pending([], sizes, sum(sizes), 5_000, closed)
    return PreferredPolicy(config).plan(pending, 5_000 + waited_ns)


@pytest.mark.parametrize(
    ("sizes", "preferred", "expected"),
    [
        ([1], [2, 6], Wait(6_000)),
        ([3], [2, 6], Wait(6_000)),
        ([2], [2, 6], Run(1)),
        ([1, 1], [2, 6], Run(2)),
        ([1, 1, 1], [2, 6], Run(2)),
        ([1] * 7, [2, 6], Run(6)),
        ([3, 3], [2, 6], Run(2)),
        ([2, 1, 3], [6, 2], Run(3)),
        ([2, 1, 2], [2, 6], Run(1)),
        ([3, 4], [2, 6], Run(1)),
        ([7], [2, 6], Run(1)),
        ([7, 1], [2, 6], Run(1)),
        ([1] * 7, [], Wait(6_000)),
        ([1] * 8, [], Run(8)),
    ],
)
def test_a_batch_runs_when_waiting_cannot_improve_it(sizes, preferred, expected):
    assert plan(sizes, preferred) == expected


def test_a_batch_below_its_preferred_size_never_runs_early():
    assert plan([1], [2], waited_ns=DELAY_NS - 1) == Wait(6_000)
    assert plan([1], [2], waited_ns=DELAY_NS) == Run(1)


def test_when_the_delay_ends_everything_that_fits_runs():
    assert plan([1] * 5, [4], waited_ns=DELAY_NS - 1) == Run(4)
    assert plan([1] * 5, [4], waited_ns=DELAY_NS) == Run(5)


def test_without_delay_nothing_waits_and_preferred_sizes_still_come_first():
    assert plan([1] * 3, [4], delay_ns=0) == Run(3)
    assert plan([1] * 5, [4], delay_ns=0) == Run(4)
    assert plan([1] * 5, [], delay_ns=0) == Run(5)


def test_a_closed_batch_runs_immediately_with_its_best_size():
    assert plan([1], [4], closed=True) == Run(1)
    assert plan([1] * 5, [4], closed=True) == Run(4)


def test_a_model_without_a_batch_dimension_never_waits():
    assert plan([1], [], maximum=0) == Run(1)


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    preferred=st.lists(st.integers(1, 9), max_size=3),
    delay_ns=st.sampled_from([0, DELAY_NS]),
    waited_ns=st.integers(0, 2 * DELAY_NS),
    closed=st.booleans(),
)
def test_a_decision_is_never_empty_never_early_and_never_late(
    sizes, preferred, delay_ns, waited_ns, closed
):
    decision = plan(sizes, preferred, 99, delay_ns, waited_ns, closed)
    if isinstance(decision, Wait):
        assert decision.until_ns == 6_000
        assert waited_ns < delay_ns
        assert not closed
    else:
        assert 1 <= decision.count <= len(sizes)
