from __future__ import annotations

import gc
import random
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tests.runners.call_simulation import CallSimulation, Plan
from tritonpy.runners.call_graph import check_model_call, find_cycle, find_stuck, refused_model_call
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import RecordingSink
from tritonpy_types import Batch, InferRequest, OutputSpec, Tensor
from tritonpy_types.errors import Code, Internal, InvalidArgument, NotFound, Unavailable


def started(simulation, model, calls=()):
    """Send a request to `model` and let an instance begin it."""
    flow = simulation.send_request(Plan(model, list(calls)))
    while flow not in simulation.running:
        simulation._takes().__next__()()
    return flow


def test_a_call_to_the_same_model_is_refused_with_one_instance():
    simulation = CallSimulation({"a": 1})
    with pytest.raises(Unavailable) as refused:
        simulation.call(started(simulation, "a"), Plan("a"))
    assert refused.value.message == (
        "the call would deadlock: instance 'a_0_0' waits for model 'a', and no other instance is free to execute it. "
        "Give one of these models more instances (instance_group), or make the call from a decoupled model after its 'execute' returned: "
        "it then holds no instance."
    )


def test_a_second_instance_may_serve_the_first_but_not_vice_versa():
    simulation = CallSimulation({"a": 2})
    first, second = started(simulation, "a"), started(simulation, "a")
    simulation.call(first, Plan("a"))
    with pytest.raises(
        Unavailable, match="'a_0_1' waits for model 'a', instance 'a_0_0' waits for model 'a'"
    ):
        simulation.call(second, Plan("a"))
    simulation.settle()
    assert simulation.unfinished() == []


def test_a_draining_instance_does_not_count():
    simulation = CallSimulation({"a": 2})
    going, staying = started(simulation, "a"), started(simulation, "a")
    simulation.call(going, Plan("a"))
    going.batch.instance.draining = True
    simulation.call(staying, Plan("a"))  # a third instance took its place


def test_the_call_that_closes_a_cycle_of_one_request_is_refused():
    simulation = CallSimulation({"a": 1, "b": 1, "c": 1})
    a = started(simulation, "a")
    simulation.call(a, Plan("b"))
    simulation.moves()[0]()
    b = simulation.running[-1]
    simulation.call(b, Plan("c"))
    simulation.moves()[0]()
    c = simulation.running[-1]
    text = "instance 'c_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b', instance 'b_0_0' waits for model 'c', and no"
    with pytest.raises(Unavailable, match=re.escape(text)):
        simulation.call(c, Plan("a"))


def test_the_call_that_closes_a_cycle_of_two_requests_is_refused():
    simulation = CallSimulation({"a": 1, "b": 1})
    a, b = started(simulation, "a"), started(simulation, "b")
    simulation.call(a, Plan("b"))
    with pytest.raises(
        Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"
    ):
        simulation.call(b, Plan("a"))
    simulation.settle()
    assert simulation.unfinished() == []


def test_another_free_instance_does_not_prevent_the_deadlock():
    simulation = CallSimulation({"a": 1, "b": 2})
    simulation.call(started(simulation, "a"), Plan("b"))
    simulation.moves()[0]()
    b = simulation.running[-1]
    with pytest.raises(Unavailable):
        simulation.call(b, Plan("a"))


def test_a_call_without_a_parent_counts_for_all_requests_of_its_batch():
    simulation = CallSimulation({"a": 1, "b": 2})
    simulation.call(started(simulation, "a"), Plan("b"))
    simulation.moves()[0]()
    b = simulation.running[-1]
    with pytest.raises(
        Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"
    ):
        simulation.graph.admit(InferRequest("a", {}, None), b.batch)


def test_a_request_queued_behind_a_blocked_execution_waits_for_it():
    simulation = CallSimulation({"a": 1, "b": 2})
    a, b = started(simulation, "a"), started(simulation, "b")
    behind = simulation.call(a, Plan("b")).request
    behind.batch = Batch([behind], model=b.batch.model, instance=b.batch.instance, executing=True)
    with pytest.raises(
        Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'b'"
    ):
        simulation.call(b, Plan("a"))


def test_an_ensemble_waits_for_the_models_of_all_nested_steps():
    simulation = CallSimulation({"a": 1, "b": 1}, {"inner": ["a"], "outer": ["b", "inner"]})
    with pytest.raises(Unavailable, match="instance 'a_0_0' waits for model 'outer'"):
        simulation.call(started(simulation, "a"), Plan("outer"))
    simulation.call(started(simulation, "b"), Plan("inner"))


def test_a_step_of_a_called_ensemble_is_part_of_the_cycle():
    simulation = CallSimulation({"a": 1, "b": 2}, {"both": ["b"]})
    simulation.call(started(simulation, "a"), Plan("both"))
    simulation.moves()[0]()  # the ensemble requests its step
    simulation.moves()[0]()  # the step begins
    b = simulation.running[-1]
    assert b.request.model_name == "b"
    with pytest.raises(
        Unavailable, match="'b_0_0' waits for model 'a', instance 'a_0_0' waits for model 'both'"
    ):
        simulation.call(b, Plan("a"))


def test_an_ensemble_does_not_wait_for_finished_steps():
    simulation = CallSimulation({"a": 1, "b": 1, "d": 1}, {"e": ["d", "b", "d"]})
    a = started(simulation, "a")
    ensemble = simulation.call(a, Plan("e"))
    while len(ensemble.todo) > 1 or not ensemble.waits_for.request.finished:
        simulation.moves()[0]()  # the first two steps are finished, the third is not requested
    d = started(simulation, "d")
    with pytest.raises(
        Unavailable, match="'d_0_0' waits for model 'a', instance 'a_0_0' waits for model 'e'"
    ):
        simulation.call(d, Plan("a"))
    simulation.call(started(simulation, "b"), Plan("a"))


def test_an_ensemble_does_not_wait_for_steps_of_unrequested_outputs():
    simulation = CallSimulation({"a": 1, "b": 1}, {"e": ["b", "a"]})
    a = started(simulation, "a")
    half = InferRequest("e", {}, None, outputs={"t1": OutputSpec("t1")}, parent=a.request)
    simulation.graph.admit(half, a.batch)
    whole = InferRequest("e", {}, None, outputs={"Y": OutputSpec("Y")}, parent=a.request)
    with pytest.raises(Unavailable, match="instance 'a_0_0' waits for model 'e'"):
        simulation.graph.admit(whole, a.batch)


def test_a_recursive_ensemble_is_handled():
    simulation = CallSimulation({"a": 1}, {"e": ["f"], "f": ["e"]})
    simulation.graph.admit(InferRequest("e", {}, None), started(simulation, "a").batch)


def test_a_decoupled_model_whose_execute_returned_holds_no_instance():
    simulation = CallSimulation({"d": 1, "a": 1}, decoupled=["d"])
    flow = started(simulation, "d")
    simulation.call(flow, Plan("d"))
    simulation.settle()
    assert simulation.unfinished() == []


def test_a_request_waits_for_the_calls_that_answer_it_also_after_execute_returned():
    simulation = CallSimulation({"a": 1, "d": 1}, decoupled=["d"])
    simulation.call(started(simulation, "a"), Plan("d"))
    simulation.moves()[0]()
    d = simulation.running[-1]
    with pytest.raises(
        Unavailable,
        match="a request of model 'd' waits for model 'a', instance 'a_0_0' waits for model 'd'",
    ):
        simulation.call(d, Plan("a"))


def test_a_missing_model_does_not_block():
    simulation = CallSimulation({"a": 1})
    simulation.graph.admit(InferRequest("nobody", {}, None), started(simulation, "a").batch)


def test_finished_or_removed_calls_do_not_block():
    simulation = CallSimulation({"a": 1, "b": 1})
    a, b = started(simulation, "a"), started(simulation, "b")
    answered, forgotten, gone = (InferRequest("b", {}, None) for _ in range(3))
    for call in (answered, forgotten, gone):
        simulation.graph.admit(call, a.batch)
    answered.finished = True
    simulation.graph.forget(forgotten)
    with pytest.raises(Unavailable):
        simulation.call(b, Plan("a"))
    del call, gone
    gc.collect()
    simulation.call(b, Plan("a"))


def test_a_refused_call_does_not_block():
    simulation = CallSimulation({"a": 1, "b": 1})
    a, b = started(simulation, "a"), started(simulation, "b")
    kept = InferRequest("a", {}, None)
    with pytest.raises(Unavailable):
        simulation.graph.admit(kept, a.batch)
    simulation.call(b, Plan("a"))


def test_a_child_is_added_while_its_parents_instance_executes():
    simulation = CallSimulation({"a": 1})
    a = started(simulation, "a")
    with pytest.raises(Unavailable):
        simulation.graph.admit_child(InferRequest("a", {}, None, parent=a.request))
    a.batch.executing = False
    simulation.graph.admit_child(InferRequest("a", {}, None, parent=a.request))
    simulation.graph.admit_child(
        InferRequest("a", {}, None, parent=InferRequest("client", {}, None))
    )
    simulation.graph.admit_child(InferRequest("a", {}, None))


def test_a_background_call_of_an_ending_execution_holds_no_instance():
    simulation = CallSimulation({"a": 1})
    a = started(simulation, "a")
    simulation.graph.admit_child(InferRequest("a", {}, None, parent=a.request, detached=True))


def test_a_blocking_call_of_an_ending_execution_waits_for_the_loop():
    simulation = CallSimulation({"d": 2})
    call = InferRequest(
        "d", {}, None, parent=started(simulation, "d").request, detached=True, blocks_loop=True
    )
    with pytest.raises(Unavailable, match="await 'async_exec'"):
        simulation.graph.admit_child(call)


def test_a_call_without_a_waiting_instance_is_admitted():
    simulation = CallSimulation({"a": 1})
    a = started(simulation, "a")
    call = InferRequest("a", {}, None, parent=a.request)
    simulation.graph.admit(call, None)
    simulation.graph.admit_child(call)


def test_a_blocked_loop_holds_its_instance_and_its_requests():
    simulation = CallSimulation({"d": 2}, decoupled=["d"], halting=["d"])
    with pytest.raises(
        Unavailable,
        match=r"instance 'd_0_0' waits for model 'd', and no .* await 'async_exec' instead of 'exec'",
    ):
        simulation.call(started(simulation, "d"), Plan("d"))
    simulation.settle()
    assert simulation.unfinished() == []


def test_a_request_with_a_blocked_coroutine_is_part_of_the_cycle():
    simulation = CallSimulation({"a": 1, "d": 1}, decoupled=["d"], halting=["d"])
    a, waiting = started(simulation, "a"), started(simulation, "d")
    simulation.call(a, Plan("d"))
    simulation.moves()[0]()  # the same instance takes it
    with pytest.raises(
        Unavailable, match="'d_0_0' waits for model 'a', instance 'a_0_0' waits for model 'd'"
    ):
        simulation.call(waiting, Plan("a"))


MODELS = ["a", "b", "d"]
CALLED = st.sampled_from([*MODELS, "e"])
LAST_CALLS = st.lists(st.builds(Plan, CALLED), max_size=2)
CALLS = st.lists(st.builds(Plan, CALLED, LAST_CALLS), max_size=2)
PLANS = st.lists(st.builds(Plan, CALLED, CALLS), min_size=1, max_size=4)
SEEDS = st.integers(0, 2**32)
WORLDS = st.builds(
    CallSimulation,
    st.fixed_dictionaries({name: st.integers(1, 2) for name in MODELS}),
    st.fixed_dictionaries({"e": st.lists(st.sampled_from(MODELS), min_size=1, max_size=2)}),
    st.sampled_from([(), ("d",)]),
)
HALTING_WORLDS = st.builds(
    CallSimulation,
    st.fixed_dictionaries({name: st.integers(1, 2) for name in MODELS}),
    st.fixed_dictionaries({"e": st.lists(st.sampled_from(MODELS), min_size=1, max_size=2)}),
    st.sampled_from([("d",), ("b", "d")]),
    st.just(("d",)),
)


@given(st.one_of(WORLDS, HALTING_WORLDS), PLANS, SEEDS)
def test_no_order_of_events_ends_in_a_deadlock(simulation, plans, seed):
    order = random.Random(seed)
    for plan in plans:
        simulation.send_request(plan)
    while moves := simulation.moves():
        order.choice(moves)()
    assert simulation.unfinished() == []


@given(WORLDS, PLANS, SEEDS)
def test_every_refused_call_would_have_deadlocked(simulation, plans, seed):
    order = random.Random(seed)
    for plan in plans:
        simulation.send_request(plan)
    while (moves := simulation.moves()) and not simulation.refused:
        order.choice(moves)()
    if not simulation.refused:
        return
    caller, model, text = simulation.refused[0]
    forced = caller.waits_for = simulation._send(
        InferRequest(model, {}, None, parent=caller.request), Plan(model)
    )
    simulation.settle()
    assert not forced.request.finished, text


PLAIN, DECOUPLED = ModelConfig(), ModelConfig()
DECOUPLED.model_transaction_policy.decoupled = True
IN = Tensor.from_numpy("IN", np.zeros(1, np.float32))


def call(accepts_decoupled=False):
    return InferRequest(
        "m", {"IN": IN}, RecordingSink().sink, 3, "7", accepts_decoupled=accepts_decoupled
    )


def test_a_valid_call_passes():
    check_model_call(
        call(), [IN], lambda name, version: PLAIN if (name, version) == ("m", 3) else None
    )
    check_model_call(call(accepts_decoupled=True), [IN], lambda *_: DECOUPLED)


def test_a_call_to_a_missing_model_fails_as_not_ready():
    def find(name, version):
        raise NotFound("nowhere")

    with pytest.raises(Internal, match="Model 'm' is not ready"):
        check_model_call(call(), [IN], find)


def test_a_decoupled_model_needs_a_caller_that_accepts_any_number_of_responses():
    with pytest.raises(Internal, match="Please use 'decoupled=True' argument"):
        check_model_call(call(), [IN], lambda *_: DECOUPLED)


def test_a_duplicate_input_is_named():
    with pytest.raises(InvalidArgument) as refused:
        check_model_call(call(), [IN, IN], lambda *_: PLAIN)
    assert refused.value.message == "[request id: 7] input 'IN' already exists in request"


def test_a_refusal_names_the_model_whatever_its_code_was():
    refusal = refused_model_call("m", InvalidArgument("no good"))
    assert (refusal.code, refusal.message) == (
        Code.INTERNAL,
        "Model m - Error when running inference: no good",
    )


NODES = "abcd"
GROUPS = st.lists(st.sets(st.sampled_from(NODES), min_size=1, max_size=3), max_size=3)
GRAPHS = st.dictionaries(st.sampled_from(NODES), GROUPS)


def nodes_that_can_proceed(waits):
    """Return the nodes that are free at the end of any possible order of events."""
    start = frozenset((node, index) for node in waits for index in range(len(waits[node])))
    seen, todo, gone_on = {start}, [start], set()
    while todo:
        open_waits = todo.pop()
        free = set(NODES) - {node for node, _ in open_waits}
        gone_on |= free
        for node, index in open_waits:
            after = open_waits - {(node, index)}
            if waits[node][index] & free and after not in seen:
                seen.add(after)
                todo.append(after)
    return gone_on


@given(GRAPHS)
def test_stuck_nodes_proceed_in_no_order_of_events(waits):
    assert find_stuck(waits) == set(NODES) - nodes_that_can_proceed(waits)


@given(GRAPHS)
def test_a_cycle_is_a_closed_path_of_stuck_nodes(waits):
    held = find_stuck(waits)
    for start in held:
        path = find_cycle(waits, held, start)
        assert path[0] == start
        assert path[-1] in path[:-1]
        assert len(set(path)) == len(path) - 1
        for node, then in pairwise(path):
            assert any(then in group and group <= held for group in waits[node])


def test_one_free_member_of_each_group_is_enough():
    assert find_stuck({"a": [["a", "b"]]}) == set()
    assert find_stuck({"a": [["a", "b"]], "b": [["a"]]}) == {"a", "b"}
    assert find_stuck({"a": [["b"], ["a", "c"]], "b": [["c"]]}) == set()


def test_nodes_that_wait_for_stuck_nodes_are_stuck():
    assert find_stuck({"a": [["b"]], "b": [["b"]], "c": [["a"], ["d"]]}) == {"a", "b", "c"}
