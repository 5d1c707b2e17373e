"""Whether the event loop may run an instance, decided on a clock of the test's own."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy.ipc.blocks import Block, PlacedInputs
from tritonpy.ipc.signatures import Column, Signature
from tritonpy.runners.quickness import (
    EACH_NS,
    ENDLESS_NS,
    MOST_NS,
    QUICK_NS,
    SLOW_NS,
    STALLED_NS,
    SURE,
    TOGETHER_NS,
    Quickness,
    Size,
)
from tritonpy.types import Batch, CallbackSink, InferRequest, Tensor

SINK = CallbackSink(lambda request, response: None)


def size(*elements: int, requests: int = 1) -> Size:
    tensors = {str(number): Tensor.from_numpy("IN", np.zeros(count, np.int32)) for number, count in enumerate(elements)}
    return Size.of(Batch([InferRequest("m", tensors, SINK) for _ in range(requests)]))


def run(quickness: Quickness, count: int, ns: int = 1000, *, on_loop: bool = False, elements: int = 16) -> None:
    for _ in range(count):
        quickness.took(size(elements), ns, ns, on_loop)


@pytest.fixture
def proven() -> Quickness:
    quickness = Quickness()
    run(quickness, SURE)
    return quickness


def test_an_instance_proves_itself_first(proven: Quickness) -> None:
    fresh = Quickness()
    run(fresh, SURE - 1)
    assert (fresh.hopeful, fresh.sure(size(16))) == (False, False)
    assert (proven.hopeful, proven.sure(size(16))) == (True, True)


def test_each_size_proves_itself(proven: Quickness) -> None:
    assert not proven.sure(size(4096))
    assert proven.sure(size(17))


def test_the_size_is_that_of_all_inputs() -> None:
    assert size(16) < size(16, 16) == size(32) == size(33)


def test_a_batch_proves_itself_by_its_number_of_requests_too(proven: Quickness) -> None:
    assert size(8, requests=2).nbytes == size(16).nbytes
    assert not proven.sure(size(8, requests=2))
    assert size(16, requests=2) == size(16, requests=3) < size(16, requests=4)


@pytest.mark.parametrize(("requests", "most_ns"), [(1, QUICK_NS), (3, TOGETHER_NS + 2 * EACH_NS), (1000, MOST_NS)])
def test_a_batch_has_time_for_each_request(requests: int, most_ns: int) -> None:
    several = size(16, requests=requests)
    for ns in (most_ns, most_ns + 1):
        quickness = Quickness()
        for _ in range(SURE):
            quickness.took(several, ns, ns, on_loop=False)
        assert quickness.sure(several) is (ns == most_ns)


def test_a_batch_that_is_slow_on_its_thread_changes_nothing_for_others(proven: Quickness) -> None:
    proven.took(size(16, requests=64), SLOW_NS + 1, SLOW_NS + 1, on_loop=False)
    assert (proven.hopeful, proven.sure(size(16))) == (True, True)


def test_who_is_not_quick_in_the_mean_is_not_run() -> None:
    quickness = Quickness()
    run(quickness, 10 * SURE, QUICK_NS + 1)
    assert not quickness.hopeful


def test_an_execution_that_waits_counts_by_the_clock() -> None:
    quickness = Quickness()
    for _ in range(10 * SURE):
        quickness.took(size(16), 1000, SLOW_NS, on_loop=False)
    assert not quickness.hopeful


def test_one_that_waits_for_the_interpreter_on_its_thread_counts_by_the_processor() -> None:
    quickness = Quickness()
    for _ in range(SURE):
        quickness.took(size(16), 1000, SLOW_NS - 1, on_loop=False)
    assert quickness.sure(size(16))


@pytest.mark.parametrize("requests", [1, 3, 1000])
def test_one_that_waits_on_the_loop_goes_back_to_its_thread_for_some_time(requests: int) -> None:
    quickness, several, on_loop = Quickness(), size(16, requests=requests), 0
    for _ in range(1000):
        sure = quickness.sure(several)
        on_loop += sure
        quickness.took(several, 1000, 3 * several.quick_ns if sure else 1000, on_loop=sure)
    assert 10 < on_loop < 150


def test_one_that_lost_the_processor_once_is_forgiven(proven: Quickness) -> None:
    proven.took(size(16), 1000, SLOW_NS, on_loop=True)
    assert proven.sure(size(16))


def test_a_slow_execution_begins_the_proof_again(proven: Quickness) -> None:
    run(proven, 1, SLOW_NS + 1)
    assert not proven.hopeful
    run(proven, SURE)
    assert proven.sure(size(16))


@pytest.mark.parametrize(("busy_ns", "ns"), [(SLOW_NS + 1, SLOW_NS + 1), (1000, ENDLESS_NS + 1)])
def test_a_slow_execution_on_the_loop_doubles_the_proof(proven: Quickness, busy_ns: int, ns: int) -> None:
    proven.took(size(16), busy_ns, ns, on_loop=True)
    run(proven, 2 * SURE - 1)
    assert not proven.hopeful
    run(proven, 1)
    assert proven.sure(size(16))


def test_a_long_good_behaviour_makes_up_for_it(proven: Quickness) -> None:
    run(proven, 1, SLOW_NS + 1, on_loop=True)
    run(proven, 2 * SURE)
    run(proven, 64 * 2 * SURE, on_loop=True)
    run(proven, 1, SLOW_NS + 1)
    run(proven, SURE)
    assert proven.sure(size(16))


def test_who_kept_the_loop_busy_for_long_is_never_run_there_again(proven: Quickness) -> None:
    run(proven, 1, ENDLESS_NS + 1, on_loop=True)
    run(proven, 1000 * SURE)
    assert not proven.hopeful


def test_who_stopped_the_loop_for_long_without_work_is_never_run_there_again(proven: Quickness) -> None:
    proven.took(size(16), 1000, STALLED_NS + 1, on_loop=True)
    run(proven, 1000 * SURE)
    assert not proven.hopeful


def test_who_is_about_to_end_is_not_run(proven: Quickness) -> None:
    proven.give_up()
    run(proven, SURE)
    assert not proven.hopeful


def test_inputs_that_lie_in_a_block_count_without_being_looked_at():
    block = Block(
        Signature([Column("x", "INT32", (1, 25), np.dtype(np.int32))], None), 3, np.zeros(304, np.uint8), 0, Tensor
    )
    requests = [InferRequest("m", PlacedInputs(block, place), SINK) for place in range(3)]
    assert Size.of(Batch(requests)) == size(25, requests=3)
