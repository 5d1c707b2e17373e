from __future__ import annotations

import pytest

from tritonpy import Internal

from .scripted_engine import DECOUPLED, ensemble, make_harness, member, step

TOKENS = ensemble(step("many", "IN", "OUT=MID") + step("one", "IN=MID", "OUT"), more=DECOUPLED)
MANY, ONE = member("many", decoupled=True), member("one")


def tokens():
    return make_harness(TOKENS, MANY, ONE)


def test_each_response_of_a_member_runs_the_rest_of_the_graph():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    for number in range(3):
        harness.engine.respond(many, OUT=[number], final=False)
        harness.engine.respond(harness.engine.in_flight[-1], OUT=[10 * number])
    assert harness.responses(request) == [{"OUT": [0]}, {"OUT": [10]}, {"OUT": [20]}]
    harness.engine.end_stream(many)
    assert harness.flags(request) == [(False, False), (False, False), (False, False), (True, True)]
    assert harness.is_idle()


def test_the_last_response_is_final_if_the_member_has_ended():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    harness.engine.respond(many, OUT=[0], final=False)
    harness.engine.respond(many, OUT=[1])
    for one in harness.engine.calls[1:]:
        harness.engine.respond(one, OUT=[5])
    assert harness.flags(request) == [(False, False), (True, False)]
    assert harness.is_idle()


def test_a_member_that_ends_without_a_response_ends_the_stream():
    harness = tokens()
    request = harness.send(IN=[1])
    harness.engine.end_stream(harness.engine.calls[0])
    assert harness.flags(request) == [(True, True)]
    assert harness.is_idle()


def test_responses_keep_the_order_of_the_member_responses():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    for number in range(3):
        harness.engine.respond(many, OUT=[number], final=number == 2)
    for one in reversed(harness.engine.calls[1:]):
        harness.engine.respond(one, OUT=one.inputs["IN"].numpy().tolist())
    assert harness.responses(request) == [{"OUT": [0]}, {"OUT": [1]}, {"OUT": [2]}]
    assert harness.flags(request) == [(False, False), (False, False), (True, False)]


def test_a_step_without_a_response_does_not_block_others():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    for number in range(2):
        harness.engine.respond(many, OUT=[number], final=False)
    harness.engine.respond(harness.engine.calls[2], OUT=[1])
    assert harness.responses(request) == []
    harness.engine.end_stream(harness.engine.calls[1])
    assert harness.responses(request) == [{"OUT": [1]}]
    harness.engine.end_stream(many)
    assert harness.is_idle()


def test_outputs_of_different_responses_are_never_joined():
    steps = (
        step("many", "IN", "L R")
        + step("one", "IN=L", "OUT=A")
        + step("two", "IN=R", "OUT=B")
        + step("join", "A B", "OUT")
    )
    members = [
        member("many", "IN", "L R", decoupled=True),
        ONE,
        member("two"),
        member("join", "A B", "OUT"),
    ]
    harness = make_harness(ensemble(steps, more=DECOUPLED), *members)
    request = harness.send(IN=[1])
    for number in range(2):
        harness.engine.respond(harness.engine.calls[0], L=[number], R=[number], final=number == 1)
    one, two = (
        [call for call in harness.engine.calls if call.model_name == name]
        for name in ("one", "two")
    )
    for call in (one[1], two[0], one[0], two[1]):
        harness.engine.respond(call, OUT=call.inputs["IN"].numpy().tolist())
    joins = [call for call in harness.engine.calls if call.model_name == "join"]
    for join in joins:
        left, right = (join.inputs[name].numpy().tolist() for name in "AB")
        assert left == right
        harness.engine.respond(join, OUT=left)
    assert harness.responses(request) == [{"OUT": [0]}, {"OUT": [1]}]


def test_each_response_may_lead_to_many_responses_of_the_next_member():
    config = ensemble(step("many", "IN", "OUT=MID") + step("more", "IN=MID", "OUT"), more=DECOUPLED)
    harness = make_harness(config, MANY, member("more", decoupled=True))
    request = harness.send(IN=[1])
    many = harness.engine.calls[0]
    harness.engine.respond(many, OUT=[0], final=False)
    harness.engine.respond(many, OUT=[1], final=False)
    first, second = harness.engine.calls[1:]
    harness.engine.respond(second, OUT=[10], final=False)
    harness.engine.respond(first, OUT=[0], final=False)
    harness.engine.end_stream(second)
    harness.engine.respond(first, OUT=[1], final=False)
    harness.engine.end_stream(many)
    assert harness.responses(request) == [{"OUT": [0]}, {"OUT": [1]}]
    harness.engine.end_stream(first)
    assert harness.responses(request) == [{"OUT": [0]}, {"OUT": [1]}, {"OUT": [10]}]
    assert harness.flags(request)[-1] == (True, False)
    assert harness.is_idle()


def test_only_the_error_is_sent_after_an_error():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    for number in range(3):
        harness.engine.respond(many, OUT=[number], final=False)
    _, first, second, third = harness.engine.calls
    harness.engine.respond(first, OUT=[0])
    harness.engine.fail(second, Internal("boom"))
    assert harness.engine.cancelled in ([many, third], [third, many])
    harness.engine.respond(third, OUT=[2])
    harness.engine.respond(many, OUT=[3], final=False)
    harness.engine.end_stream(many)
    assert len(harness.engine.calls) == 4
    good, bad = harness.recorder.responses(request)
    assert not good.final
    assert bad.final
    assert bad.error is not None
    assert bad.error.message == "in ensemble 'e', boom (step 1, model 'one': 'OUT' from 'MID')"
    assert harness.is_idle()


def test_a_cancelled_stream_ends_with_its_member():
    harness = tokens()
    request = harness.send(IN=[1])
    (many,) = harness.engine.calls
    harness.engine.respond(many, OUT=[0], final=False)
    request.cancel()
    assert set(map(id, harness.engine.cancelled)) == {id(many), id(harness.engine.calls[1])}
    harness.engine.respond(many, OUT=[1], final=False)
    assert len(harness.engine.calls) == 2
    harness.engine.fail_cancelled()
    with pytest.raises(Exception, match="in ensemble 'e', Request cancelled"):
        harness.responses(request)
    assert harness.is_idle()
