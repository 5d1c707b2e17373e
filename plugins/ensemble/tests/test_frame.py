from __future__ import annotations

import gc
import weakref

import numpy as np

from tritonpy import Tensor
from tritonpy_ensemble.frame import Frame, Value
from tritonpy_ensemble.plan import make_plan

from .stage import ensemble, ints, step

NOTHING = Value(None, 0, None)
CHAIN = make_plan(ensemble(step("a", "X=IN", "Y=MID") + step("b", "X=MID Z=IN", "Y=OUT"), outputs="OUT MID"))
IN, MID, OUT = (CHAIN.tensors.index(name) for name in ("IN", "MID", "OUT"))


def begun(frame, tensor, value=NOTHING):
    """Fill a tensor; return the models of the steps that can begin then."""
    startable = []
    frame.fill(tensor, value, startable)
    assert all(each is frame for each, _ in startable)
    return [step.model for _, step in startable]


def test_a_step_can_begin_once_when_its_last_tensor_comes():
    frame = Frame(CHAIN)
    assert begun(frame, IN) == ["a"]
    assert begun(frame, MID) == ["b"]
    assert begun(frame, MID) == []


def test_the_first_value_of_a_tensor_stays():
    frame, first = Frame(CHAIN), Value(ints("IN", [1]), 0, None)
    begun(frame, IN, first)
    begun(frame, IN, Value(ints("IN", [2]), 0, None))
    assert frame.take(IN) is first


def test_it_is_whole_once_when_the_last_output_comes():
    frame = Frame(CHAIN)
    begun(frame, MID)
    assert not frame.take_whole()
    begun(frame, OUT)
    assert frame.take_whole()
    assert not frame.take_whole()


def test_what_came_is_known_also_when_it_was_handed_on():
    frame = Frame(CHAIN)
    begun(frame, IN)
    frame.take(IN)
    frame.take(IN)
    assert frame.has_all([IN])
    assert not frame.has_all([IN, MID])


def test_a_buffer_is_let_go_of_with_its_last_consumer():
    frame = Frame(CHAIN)
    watched = {}
    for number in (IN, MID):
        data = np.zeros(4, np.int32)
        watched[number] = weakref.ref(data)
        begun(frame, number, Value(Tensor(CHAIN.tensors[number], "INT32", (4,), data), 0, None))
        del data
    frame.take(IN)
    assert watched[IN]() is not None
    frame.take(IN)
    gc.collect()
    assert watched[IN]() is None
    frame.take(MID)
    assert watched[MID]() is not None  # it is an output too
    frame.end(MID)
    gc.collect()
    assert watched[MID]() is None


def test_two_frames_of_a_plan_know_nothing_of_each_other():
    one, other = Frame(CHAIN), Frame(CHAIN)
    begun(one, IN)
    assert not other.has_all([IN])
    assert begun(other, IN) == ["a"]
