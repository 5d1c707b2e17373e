from __future__ import annotations

import pytest

from tritonpy import Internal

from .stage import DECOUPLED, ensemble, member, play, step

TOKENS = ensemble(step("many", "IN", "OUT=MID") + step("one", "IN=MID", "OUT"), more=DECOUPLED)
MANY, ONE = member("many", decoupled=True), member("one")


def tokens():
    return play(TOKENS, MANY, ONE)


def test_each_answer_of_a_member_runs_the_rest_of_the_graph():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    for number in range(3):
        show.stage.answer(many, OUT=[number], final=False)
        show.stage.answer(show.stage.open[-1], OUT=[10 * number])
    assert show.answers(request) == [{"OUT": [0]}, {"OUT": [10]}, {"OUT": [20]}]
    show.stage.end(many)
    assert show.flags(request) == [(False, False), (False, False), (False, False), (True, True)]
    assert show.over()


def test_the_last_answer_is_final_where_the_member_ended_before_it():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    show.stage.answer(many, OUT=[0], final=False)
    show.stage.answer(many, OUT=[1])
    for one in show.stage.calls[1:]:
        show.stage.answer(one, OUT=[5])
    assert show.flags(request) == [(False, False), (True, False)]
    assert show.over()


def test_a_member_that_ends_without_an_answer_ends_the_stream():
    show = tokens()
    request = show.ask(IN=[1])
    show.stage.end(show.stage.calls[0])
    assert show.flags(request) == [(True, True)]
    assert show.over()


def test_answers_keep_the_order_of_the_answers_that_they_come_from():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    for number in range(3):
        show.stage.answer(many, OUT=[number], final=number == 2)
    for one in reversed(show.stage.calls[1:]):
        show.stage.answer(one, OUT=one.inputs["IN"].numpy().tolist())
    assert show.answers(request) == [{"OUT": [0]}, {"OUT": [1]}, {"OUT": [2]}]
    assert show.flags(request) == [(False, False), (False, False), (True, False)]


def test_a_step_that_answers_nothing_holds_up_nobody():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    for number in range(2):
        show.stage.answer(many, OUT=[number], final=False)
    show.stage.answer(show.stage.calls[2], OUT=[1])
    assert show.answers(request) == []
    show.stage.end(show.stage.calls[1])
    assert show.answers(request) == [{"OUT": [1]}]
    show.stage.end(many)
    assert show.over()


def test_outputs_of_one_answer_are_joined_again_and_never_with_those_of_another():
    steps = (
        step("many", "IN", "L R")
        + step("one", "IN=L", "OUT=A")
        + step("two", "IN=R", "OUT=B")
        + step("join", "A B", "OUT")
    )
    members = [member("many", "IN", "L R", decoupled=True), ONE, member("two"), member("join", "A B", "OUT")]
    show = play(ensemble(steps, more=DECOUPLED), *members)
    request = show.ask(IN=[1])
    for number in range(2):
        show.stage.answer(show.stage.calls[0], L=[number], R=[number], final=number == 1)
    one, two = ([call for call in show.stage.calls if call.model_name == name] for name in ("one", "two"))
    for call in (one[1], two[0], one[0], two[1]):
        show.stage.answer(call, OUT=call.inputs["IN"].numpy().tolist())
    joins = [call for call in show.stage.calls if call.model_name == "join"]
    for join in joins:
        left, right = (join.inputs[name].numpy().tolist() for name in "AB")
        assert left == right
        show.stage.answer(join, OUT=left)
    assert show.answers(request) == [{"OUT": [0]}, {"OUT": [1]}]


def test_each_answer_of_one_member_may_lead_to_many_of_the_next():
    config = ensemble(step("many", "IN", "OUT=MID") + step("more", "IN=MID", "OUT"), more=DECOUPLED)
    show = play(config, MANY, member("more", decoupled=True))
    request = show.ask(IN=[1])
    many = show.stage.calls[0]
    show.stage.answer(many, OUT=[0], final=False)
    show.stage.answer(many, OUT=[1], final=False)
    first, second = show.stage.calls[1:]
    show.stage.answer(second, OUT=[10], final=False)
    show.stage.answer(first, OUT=[0], final=False)
    show.stage.end(second)
    show.stage.answer(first, OUT=[1], final=False)
    show.stage.end(many)
    assert show.answers(request) == [{"OUT": [0]}, {"OUT": [1]}]
    show.stage.end(first)
    assert show.answers(request) == [{"OUT": [0]}, {"OUT": [1]}, {"OUT": [10]}]
    assert show.flags(request)[-1] == (True, False)
    assert show.over()


def test_after_an_error_nothing_but_the_error_comes():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    for number in range(3):
        show.stage.answer(many, OUT=[number], final=False)
    _, first, second, third = show.stage.calls
    show.stage.answer(first, OUT=[0])
    show.stage.fail(second, Internal("boom"))
    assert show.stage.cancelled in ([many, third], [third, many])
    show.stage.answer(third, OUT=[2])
    show.stage.answer(many, OUT=[3], final=False)
    show.stage.end(many)
    assert len(show.stage.calls) == 4
    good, bad = show.witness.answers(request)
    assert not good.final
    assert bad.final
    assert bad.error is not None
    assert bad.error.message == "in ensemble 'e', boom (step 1, model 'one': 'OUT' from 'MID')"
    assert show.over()


def test_a_cancelled_stream_ends_with_its_member():
    show = tokens()
    request = show.ask(IN=[1])
    (many,) = show.stage.calls
    show.stage.answer(many, OUT=[0], final=False)
    request.cancel()
    assert set(map(id, show.stage.cancelled)) == {id(many), id(show.stage.calls[1])}
    show.stage.answer(many, OUT=[1], final=False)
    assert len(show.stage.calls) == 2
    show.stage.obey()
    with pytest.raises(Exception, match="in ensemble 'e', Request cancelled"):
        show.answers(request)
    assert show.over()
