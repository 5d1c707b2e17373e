from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy.engine.leaving import leave_to_member
from tritonpy.model.closed import ModelClosed
from tritonpy.model.loaded import LoadedModel
from tritonpy.types import InferRequest


class Member:
    def __init__(self, closed=False):
        self.closed = closed
        self.taken = []

    def infer(self, request):
        if self.closed:
            raise ModelClosed
        self.taken.append(request)


def ensemble(**members):
    model = object.__new__(LoadedModel)
    model.members = {(name, -1): member for name, member in members.items()}
    return model


def step(owner, model="m"):
    parent = InferRequest("e", {}, None)
    parent.owner = owner
    return InferRequest(model, {}, None, parent=parent)


def table(*ready):
    return SimpleNamespace(ready=lambda name: list(ready))


def test_a_step_goes_to_the_member_that_is_on_its_way_out():
    member = Member()
    request = step(ensemble(m=member))
    assert leave_to_member(request, table())
    assert member.taken == [request]


@pytest.mark.parametrize("model", ["m", "other"])
def test_a_member_that_serves_is_not_asked_again_and_no_other_model_either(model):
    member = Member()
    assert not leave_to_member(step(ensemble(m=member), model), table(member))
    assert member.taken == []


def test_a_member_that_closed_already_takes_nothing():
    assert not leave_to_member(step(ensemble(m=Member(closed=True))), table())


def test_a_call_of_a_model_that_is_no_ensemble_is_left_to_its_error():
    assert not leave_to_member(step(object()), table())
    assert not leave_to_member(InferRequest("m", {}, None), table())
