"""The inline policy with a simulated clock."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy.runners.inline_policy import (
    BATCH_NS,
    BLOCKING_NS,
    FAST_NS,
    MAX_NS,
    PER_REQUEST_NS,
    REQUIRED_FAST,
    SLOW_NS,
    STALLED_NS,
    InlinePolicy,
    limit_of,
    size_class,
)
from tritonpy_ipc.blocks import Block, BlockInputs
from tritonpy_ipc.signatures import Column, TensorSignature
from tritonpy_types import Batch, CallbackSink, InferRequest, Tensor

SINK = CallbackSink(lambda request, response: None)


def size(*elements: int, requests: int = 1) -> int:
    tensors = {
        str(number): Tensor.from_numpy("IN", np.zeros(count, np.int32))
        for number, count in enumerate(elements)
    }
    return size_class(Batch([InferRequest("m", tensors, SINK) for _ in range(requests)]))


def run(
    inline_policy: InlinePolicy,
    count: int,
    ns: int = 1000,
    *,
    on_loop: bool = False,
    elements: int = 16,
) -> None:
    for _ in range(count):
        inline_policy.record(size(elements), ns, ns, on_loop)


@pytest.fixture
def proven() -> InlinePolicy:
    inline_policy = InlinePolicy()
    run(inline_policy, REQUIRED_FAST)
    return inline_policy


def test_an_instance_must_be_fast_several_times_first(proven: InlinePolicy) -> None:
    fresh = InlinePolicy()
    run(fresh, REQUIRED_FAST - 1)
    assert (fresh.has_candidates, fresh.allows(size(16))) == (False, False)
    assert (proven.has_candidates, proven.allows(size(16))) == (True, True)


def test_each_size_must_be_fast_itself(proven: InlinePolicy) -> None:
    assert not proven.allows(size(4096))
    assert proven.allows(size(17))


def test_the_size_is_that_of_all_inputs() -> None:
    assert size(16) < size(16, 16) == size(32) == size(33)


def test_the_number_of_requests_is_part_of_the_size(proven: InlinePolicy) -> None:
    assert size(8, requests=2) & 0xFF == size(16) & 0xFF
    assert not proven.allows(size(8, requests=2))
    assert size(16, requests=2) == size(16, requests=3) < size(16, requests=4)


@pytest.mark.parametrize(
    ("requests", "most_ns"), [(1, FAST_NS), (3, BATCH_NS + 2 * PER_REQUEST_NS), (1000, MAX_NS)]
)
def test_a_batch_has_time_for_each_request(requests: int, most_ns: int) -> None:
    several = size(16, requests=requests)
    for ns in (most_ns, most_ns + 1):
        inline_policy = InlinePolicy()
        for _ in range(REQUIRED_FAST):
            inline_policy.record(several, ns, ns, on_loop=False)
        assert inline_policy.allows(several) is (ns == most_ns)


def test_a_slow_batch_on_a_thread_does_not_affect_other_sizes(proven: InlinePolicy) -> None:
    proven.record(size(16, requests=64), SLOW_NS + 1, SLOW_NS + 1, on_loop=False)
    assert (proven.has_candidates, proven.allows(size(16))) == (True, True)


def test_a_slow_mean_prevents_inline_execution() -> None:
    inline_policy = InlinePolicy()
    run(inline_policy, 10 * REQUIRED_FAST, FAST_NS + 1)
    assert not inline_policy.has_candidates


def test_an_execution_that_waits_counts_by_the_clock() -> None:
    inline_policy = InlinePolicy()
    for _ in range(10 * REQUIRED_FAST):
        inline_policy.record(size(16), 1000, SLOW_NS, on_loop=False)
    assert not inline_policy.has_candidates


def test_waiting_for_the_interpreter_on_a_thread_does_not_count() -> None:
    inline_policy = InlinePolicy()
    for _ in range(REQUIRED_FAST):
        inline_policy.record(size(16), 1000, SLOW_NS - 1, on_loop=False)
    assert inline_policy.allows(size(16))


@pytest.mark.parametrize("requests", [1, 3, 1000])
def test_a_slow_inline_mean_suspends_inline_execution(requests: int) -> None:
    inline_policy, several, on_loop = InlinePolicy(), size(16, requests=requests), 0
    for _ in range(1000):
        sure = inline_policy.allows(several)
        on_loop += sure
        inline_policy.record(several, 1000, 3 * limit_of(several) if sure else 1000, on_loop=sure)
    assert 10 < on_loop < 150


def test_a_single_outlier_is_tolerated(proven: InlinePolicy) -> None:
    proven.record(size(16), 1000, SLOW_NS, on_loop=True)
    assert proven.allows(size(16))


def test_a_slow_execution_restarts_the_count(proven: InlinePolicy) -> None:
    run(proven, 1, SLOW_NS + 1)
    assert not proven.has_candidates
    run(proven, REQUIRED_FAST)
    assert proven.allows(size(16))


@pytest.mark.parametrize(("busy_ns", "ns"), [(SLOW_NS + 1, SLOW_NS + 1), (1000, BLOCKING_NS + 1)])
def test_a_slow_inline_execution_doubles_the_required_count(
    proven: InlinePolicy, busy_ns: int, ns: int
) -> None:
    proven.record(size(16), busy_ns, ns, on_loop=True)
    run(proven, 2 * REQUIRED_FAST - 1)
    assert not proven.has_candidates
    run(proven, 1)
    assert proven.allows(size(16))


def test_many_fast_inline_executions_reduce_the_required_count(proven: InlinePolicy) -> None:
    run(proven, 1, SLOW_NS + 1, on_loop=True)
    run(proven, 2 * REQUIRED_FAST)
    run(proven, 64 * 2 * REQUIRED_FAST, on_loop=True)
    run(proven, 1, SLOW_NS + 1)
    run(proven, REQUIRED_FAST)
    assert proven.allows(size(16))


def test_a_blocking_inline_execution_disables_the_policy(proven: InlinePolicy) -> None:
    run(proven, 1, BLOCKING_NS + 1, on_loop=True)
    run(proven, 1000 * REQUIRED_FAST)
    assert not proven.has_candidates


def test_a_stalled_inline_execution_disables_the_policy(proven: InlinePolicy) -> None:
    proven.record(size(16), 1000, STALLED_NS + 1, on_loop=True)
    run(proven, 1000 * REQUIRED_FAST)
    assert not proven.has_candidates


def test_a_disabled_policy_allows_nothing(proven: InlinePolicy) -> None:
    proven.disable()
    run(proven, REQUIRED_FAST)
    assert not proven.has_candidates


def test_inputs_in_a_block_are_sized_without_creating_tensors():
    block = Block(
        TensorSignature([Column("x", "INT32", (1, 25), np.dtype(np.int32))], None),
        3,
        np.zeros(304, np.uint8),
        0,
        Tensor,
    )
    requests = [InferRequest("m", BlockInputs(block, place), SINK) for place in range(3)]
    assert size_class(Batch(requests)) == size(25, requests=3)
