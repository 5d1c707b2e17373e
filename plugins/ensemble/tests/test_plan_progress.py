from __future__ import annotations

import gc
import weakref

import numpy as np

from tritonpy import Tensor
from tritonpy_ensemble.plan import make_plan
from tritonpy_ensemble.plan_progress import PlanProgress, Value

from .scripted_engine import ensemble, ints, step

NOTHING = Value(None, 0, None)
CHAIN = make_plan(
    ensemble(step("a", "X=IN", "Y=MID") + step("b", "X=MID Z=IN", "Y=OUT"), outputs="OUT MID")
)
IN, MID, OUT = (CHAIN.tensors.index(name) for name in ("IN", "MID", "OUT"))


def fill(progress, tensor, value=NOTHING):
    """Fill a tensor. Return the models of the steps that can begin then."""
    startable = []
    progress.fill(tensor, value, startable)
    assert all(each is progress for each, _ in startable)
    return [step.model for _, step in startable]


def test_a_step_can_begin_once_when_its_last_tensor_is_present():
    progress = PlanProgress(CHAIN)
    assert fill(progress, IN) == ["a"]
    assert fill(progress, MID) == ["b"]
    assert fill(progress, MID) == []


def test_the_first_value_of_a_tensor_stays():
    progress, first = PlanProgress(CHAIN), Value(ints("IN", [1]), 0, None)
    fill(progress, IN, first)
    fill(progress, IN, Value(ints("IN", [2]), 0, None))
    assert progress.take(IN) is first


def test_it_is_completed_once_when_the_last_output_is_present():
    progress = PlanProgress(CHAIN)
    fill(progress, MID)
    assert not progress.take_completed()
    fill(progress, OUT)
    assert progress.take_completed()
    assert not progress.take_completed()


def test_released_tensors_still_count_as_present():
    progress = PlanProgress(CHAIN)
    fill(progress, IN)
    progress.take(IN)
    progress.take(IN)
    assert progress.are_present([IN])
    assert not progress.are_present([IN, MID])


def test_a_buffer_is_released_after_its_last_use():
    progress = PlanProgress(CHAIN)
    watched = {}
    for number in (IN, MID):
        data = np.zeros(4, np.int32)
        watched[number] = weakref.ref(data)
        fill(progress, number, Value(Tensor(CHAIN.tensors[number], "INT32", (4,), data), 0, None))
        del data
    progress.take(IN)
    assert watched[IN]() is not None
    progress.take(IN)
    gc.collect()
    assert watched[IN]() is None
    progress.take(MID)
    assert watched[MID]() is not None  # it is also an output
    progress.end(MID)
    gc.collect()
    assert watched[MID]() is None


def test_two_passes_of_a_plan_are_independent():
    one, other = PlanProgress(CHAIN), PlanProgress(CHAIN)
    fill(one, IN)
    assert not other.are_present([IN])
    assert fill(other, IN) == ["a"]
