from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy.engine.draining_members import infer_on_draining_member
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.model_closed import ModelClosed
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


def test_a_step_goes_to_the_draining_member():
    member = Member()
    request = step(ensemble(m=member))
    assert infer_on_draining_member(request, table())
    assert member.taken == [request]


@pytest.mark.parametrize("model", ["m", "other"])
def test_ready_members_and_other_models_do_not_get_the_step(model):
    member = Member()
    assert not infer_on_draining_member(step(ensemble(m=member), model), table(member))
    assert member.taken == []


def test_a_closed_member_does_not_get_the_step():
    assert not infer_on_draining_member(step(ensemble(m=Member(closed=True))), table())


def test_a_call_of_another_model_keeps_its_error():
    assert not infer_on_draining_member(step(object()), table())
    assert not infer_on_draining_member(InferRequest("m", {}, None), table())
