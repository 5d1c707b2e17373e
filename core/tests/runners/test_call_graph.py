from __future__ import annotations

import gc
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tests.runners.call_world import Plan, World
from tritonpy.errors import Unavailable
from tritonpy.types import Batch, InferRequest, OutputSpec


def started(world, model, calls=()):
    """Ask `model` for something and let an instance begin with it."""
    flow = world.ask(Plan(model, list(calls)))
    while flow not in world.running:
        world._takes().__next__()()
    return flow


def test_a_call_of_the_own_model_is_refused_where_it_has_one_instance():
    world = World({"a": 1})
    with pytest.raises(Unavailable) as refused:
        world.call(started(world, "a"), Plan("a"))
    assert refused.value.message == (
        "the call would wait for ever: instance 'a_0_0' waits for model 'a', and no other instance is free to answer. "
        "Give one of these models more instances (instance_group), or make the call from a decoupled model after its 'execute' returned: "
        "it then holds no instance."
    )


def test_a_second_instance_may_answer_the_first_but_not_both_each_other():
    world = World({"a": 2})
    first, second = started(world, "a"), started(world, "a")
    world.call(first, Plan("a"))
    with pytest.raises(Unavailable, match="'a_0_1' waits for model 'a', instance 'a_0_0' waits for model 'a'"):
        world.call(second, Plan("a"))
    world.settle()
    assert world.unanswered() == []


def test_an_instance_that_is_to_go_is_none_of_those_that_the_configuration_counts():
    world = World({"a": 2})
    going, staying = started(world, "a"), started(world, "a")
    world.call(going, Plan("a"))
    going.batch.instance.leaving = True
    world.call(staying, Plan("a"))  # there is a third one, which took its place


def test_a_circle_of_one_request_is_refused_where_it_closes():
    world = World({"a": 1, "b": 1, "c": 1})
    a = started(world, "a")
    world.call(a, Plan("b"))
    world.moves()[0]()
    b = world.running[-1]
    world.call(b, Plan("c"))
    world.moves()[0]()
    c = world.running[-1]
    text = "instance 'c_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b', instance 'b_0_0' waits for model 'c', and no"
    with pytest.raises(Unavailable, match=re.escape(text)):
        world.call(c, Plan("a"))


def test_a_circle_of_two_requests_is_refused_where_it_closes():
    world = World({"a": 1, "b": 1})
    a, b = started(world, "a"), started(world, "b")
    world.call(a, Plan("b"))
    with pytest.raises(Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"):
        world.call(b, Plan("a"))
    world.settle()
    assert world.unanswered() == []


def test_a_free_instance_beside_the_one_that_has_the_request_does_not_help():
    world = World({"a": 1, "b": 2})
    world.call(started(world, "a"), Plan("b"))
    world.moves()[0]()
    b = world.running[-1]
    with pytest.raises(Unavailable):
        world.call(b, Plan("a"))


def test_a_call_that_cannot_say_for_which_request_of_its_batch_it_is_counts_for_all_of_them():
    world = World({"a": 1, "b": 2})
    world.call(started(world, "a"), Plan("b"))
    world.moves()[0]()
    b = world.running[-1]
    with pytest.raises(Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"):
        world.graph.admit(InferRequest("a", {}, None), b.batch)


def test_a_request_that_stands_behind_a_blocked_execution_waits_for_it():
    world = World({"a": 1, "b": 2})
    a, b = started(world, "a"), started(world, "b")
    behind = world.call(a, Plan("b")).request
    behind.batch = Batch([behind], model=b.batch.model, instance=b.batch.instance, executing=True)
    with pytest.raises(Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"):
        world.call(b, Plan("a"))


def test_an_ensemble_stands_for_the_models_of_its_steps_and_theirs():
    world = World({"a": 1, "b": 1}, {"inner": ["a"], "outer": ["b", "inner"]})
    with pytest.raises(Unavailable, match="instance 'a_0_0' waits for model 'outer'"):
        world.call(started(world, "a"), Plan("outer"))
    world.call(started(world, "b"), Plan("inner"))


def test_a_step_of_an_ensemble_that_a_model_called_is_part_of_the_circle():
    world = World({"a": 1, "b": 2}, {"both": ["b"]})
    world.call(started(world, "a"), Plan("both"))
    world.moves()[0]()  # the ensemble's step is asked for
    world.moves()[0]()  # and begins
    b = world.running[-1]
    assert b.request.model_name == "b"
    with pytest.raises(Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'both'"):
        world.call(b, Plan("a"))


def test_an_ensemble_does_not_wait_for_the_models_of_the_steps_that_are_behind_it():
    world = World({"a": 1, "b": 1, "d": 1}, {"e": ["d", "b", "d"]})
    a = started(world, "a")
    ensemble = world.call(a, Plan("e"))
    while len(ensemble.todo) > 1 or not ensemble.waits_for.request.answered:
        world.moves()[0]()  # the first two steps are answered, the third is not asked for
    d = started(world, "d")
    with pytest.raises(Unavailable, match="'d_0_0' waits for model 'a', instance 'a_0_0' waits for model 'e'"):
        world.call(d, Plan("a"))
    world.call(started(world, "b"), Plan("a"))


def test_an_ensemble_does_not_stand_for_steps_that_lead_to_outputs_nobody_asked_for():
    world = World({"a": 1, "b": 1}, {"e": ["b", "a"]})
    a = started(world, "a")
    half = InferRequest("e", {}, None, outputs={"t1": OutputSpec("t1")}, parent=a.request)
    world.graph.admit(half, a.batch)
    whole = InferRequest("e", {}, None, outputs={"Y": OutputSpec("Y")}, parent=a.request)
    with pytest.raises(Unavailable, match="instance 'a_0_0' waits for model 'e'"):
        world.graph.admit(whole, a.batch)


def test_an_ensemble_without_end_is_no_trouble():
    world = World({"a": 1}, {"e": ["f"], "f": ["e"]})
    world.graph.admit(InferRequest("e", {}, None), started(world, "a").batch)


def test_a_decoupled_model_whose_execute_returned_holds_no_instance():
    world = World({"d": 1, "a": 1}, decoupled=["d"])
    flow = started(world, "d")
    world.call(flow, Plan("d"))
    world.settle()
    assert world.unanswered() == []


def test_a_request_waits_for_the_calls_that_answer_it_also_after_execute_returned():
    world = World({"a": 1, "d": 1}, decoupled=["d"])
    world.call(started(world, "a"), Plan("d"))
    world.moves()[0]()
    d = world.running[-1]
    with pytest.raises(
        Unavailable, match="a request of model 'd' waits for model 'a', instance 'a_0_0' waits for model 'd'"
    ):
        world.call(d, Plan("a"))


def test_a_model_that_is_not_there_keeps_nobody_waiting():
    world = World({"a": 1})
    world.graph.admit(InferRequest("nobody", {}, None), started(world, "a").batch)


def test_what_is_answered_forgotten_or_gone_holds_nobody_up():
    world = World({"a": 1, "b": 1})
    a, b = started(world, "a"), started(world, "b")
    answered, forgotten, gone = (InferRequest("b", {}, None) for _ in range(3))
    for call in (answered, forgotten, gone):
        world.graph.admit(call, a.batch)
    answered.answered = True
    world.graph.forget(forgotten)
    with pytest.raises(Unavailable):
        world.call(b, Plan("a"))
    del call, gone
    gc.collect()
    world.call(b, Plan("a"))


def test_a_refused_call_holds_nobody_up():
    world = World({"a": 1, "b": 1})
    a, b = started(world, "a"), started(world, "b")
    kept = InferRequest("a", {}, None)
    with pytest.raises(Unavailable):
        world.graph.admit(kept, a.batch)
    world.call(b, Plan("a"))


def test_a_child_is_taken_in_where_its_parents_instance_executes():
    world = World({"a": 1})
    a = started(world, "a")
    with pytest.raises(Unavailable):
        world.graph.admit_child(InferRequest("a", {}, None, parent=a.request))
    a.batch.executing = False
    world.graph.admit_child(InferRequest("a", {}, None, parent=a.request))
    world.graph.admit_child(InferRequest("a", {}, None, parent=InferRequest("client", {}, None)))
    world.graph.admit_child(InferRequest("a", {}, None))


def test_what_goes_on_while_its_execution_is_just_about_to_end_holds_no_instance():
    world = World({"a": 1})
    a = started(world, "a")
    world.graph.admit_child(InferRequest("a", {}, None, parent=a.request, went_on=True))


def test_what_stops_its_loop_while_its_execution_is_just_about_to_end_waits_for_that_loop():
    world = World({"d": 2})
    call = InferRequest("d", {}, None, parent=started(world, "d").request, went_on=True, stops_loop=True)
    with pytest.raises(Unavailable, match="await 'async_exec'"):
        world.graph.admit_child(call)


def test_who_said_that_no_instance_waits_is_believed():
    world = World({"a": 1})
    a = started(world, "a")
    call = InferRequest("a", {}, None, parent=a.request)
    world.graph.admit(call, None)
    world.graph.admit_child(call)


def test_a_loop_that_stands_still_holds_its_instance_and_all_that_it_has_taken():
    world = World({"d": 2}, decoupled=["d"], halting=["d"])
    with pytest.raises(
        Unavailable, match=r"instance 'd_0_0' waits for model 'd', and no .* await 'async_exec' in place of 'exec'"
    ):
        world.call(started(world, "d"), Plan("d"))
    world.settle()
    assert world.unanswered() == []


def test_a_request_whose_coroutine_stands_still_is_part_of_the_circle():
    world = World({"a": 1, "d": 1}, decoupled=["d"], halting=["d"])
    a, waiting = started(world, "a"), started(world, "d")
    world.call(a, Plan("d"))
    world.moves()[0]()  # the same instance takes it
    with pytest.raises(Unavailable, match="'d_0_0' waits for model 'a', instance 'a_0_0' waits for model 'd'"):
        world.call(waiting, Plan("a"))


MODELS = ["a", "b", "d"]
CALLED = st.sampled_from([*MODELS, "e"])
LAST_CALLS = st.lists(st.builds(Plan, CALLED), max_size=2)
CALLS = st.lists(st.builds(Plan, CALLED, LAST_CALLS), max_size=2)
PLANS = st.lists(st.builds(Plan, CALLED, CALLS), min_size=1, max_size=4)
SEEDS = st.integers(0, 2**32)
WORLDS = st.builds(
    World,
    st.fixed_dictionaries({name: st.integers(1, 2) for name in MODELS}),
    st.fixed_dictionaries({"e": st.lists(st.sampled_from(MODELS), min_size=1, max_size=2)}),
    st.sampled_from([(), ("d",)]),
)
HALTING_WORLDS = st.builds(
    World,
    st.fixed_dictionaries({name: st.integers(1, 2) for name in MODELS}),
    st.fixed_dictionaries({"e": st.lists(st.sampled_from(MODELS), min_size=1, max_size=2)}),
    st.sampled_from([("d",), ("b", "d")]),
    st.just(("d",)),
)


@given(st.one_of(WORLDS, HALTING_WORLDS), PLANS, SEEDS)
def test_no_order_of_events_ends_in_a_deadlock(world, plans, seed):
    order = random.Random(seed)
    for plan in plans:
        world.ask(plan)
    while moves := world.moves():
        order.choice(moves)()
    assert world.unanswered() == []


@given(WORLDS, PLANS, SEEDS)
def test_what_is_refused_would_never_have_been_answered(world, plans, seed):
    order = random.Random(seed)
    for plan in plans:
        world.ask(plan)
    while (moves := world.moves()) and not world.refused:
        order.choice(moves)()
    if not world.refused:
        return
    caller, model, text = world.refused[0]
    forced = caller.waits_for = world._send(InferRequest(model, {}, None, parent=caller.request), Plan(model))
    world.settle()
    assert not forced.request.answered, text
