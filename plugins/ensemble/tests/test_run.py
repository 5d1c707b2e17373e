from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tritonpy import (
    Cancelled,
    Code,
    FailureReason,
    Internal,
    InvalidArgument,
    NotFound,
    OutputSpec,
    SequenceInfo,
    Tensor,
    Unavailable,
)
from tritonpy.testing.parse import model_config

from .stage import ensemble, ints, member, play, step

CHAIN = step("a", "IN", "OUT=MID") + step("b", "IN=MID", "OUT")
DIAMOND = (
    step("split", "IN", "L R") + step("a", "IN=L", "OUT=A") + step("b", "IN=R", "OUT=B") + step("join", "A B", "OUT")
)
ALL = tuple(member(name) for name in "ab")
SPLIT, JOIN = member("split", "IN", "L R"), member("join", "A B", "OUT")


def names(calls):
    return [call.model_name for call in calls]


def test_the_steps_of_a_chain_run_one_after_the_other():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1, 2])
    assert names(show.stage.calls) == ["a"]
    show.stage.answer(show.stage.calls[0], OUT=[3])
    assert names(show.stage.calls) == ["a", "b"]
    assert show.stage.calls[1].inputs["IN"].numpy().tolist() == [3]
    assert show.answers(request) == []
    show.stage.answer(show.stage.calls[1], OUT=[4])
    assert show.answers(request) == [{"OUT": [4]}]
    assert show.flags(request) == [(True, False)]
    assert show.over()


def test_branches_run_side_by_side_and_are_joined_when_both_are_there():
    show = play(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], L=[1], R=[2])
    assert names(show.stage.open) == ["a", "b"]
    show.stage.answer(show.stage.calls[2], OUT=[20])
    assert names(show.stage.calls) == ["split", "a", "b"]
    show.stage.answer(show.stage.calls[1], OUT=[10])
    join = show.stage.calls[3]
    assert {name: tensor.numpy().tolist() for name, tensor in join.inputs.items()} == {"A": [10], "B": [20]}
    show.stage.answer(join, OUT=[30])
    assert show.answers(request) == [{"OUT": [30]}]
    assert show.over()


def test_tensors_are_handed_on_without_a_copy_and_keep_their_bytes():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    data = request.inputs["IN"].data
    assert show.stage.calls[0].inputs["IN"] is request.inputs["IN"]
    made = ints("OUT", [5])
    show.stage.give(show.stage.calls[0], made)
    assert show.stage.calls[1].inputs["IN"].data is made.data
    assert data is request.inputs["IN"].data


def test_a_device_tensor_passes_untouched():
    show, device = play(ensemble(CHAIN), *ALL), object()
    request = show.ask()
    show.stage.give(show.stage.calls[0], Tensor("OUT", "INT32", (3,), device, (2, 0)))
    handed = show.stage.calls[1].inputs["IN"]
    assert handed.data is device
    assert handed.device == (2, 0)
    show.stage.give(show.stage.calls[1], Tensor("OUT", "INT32", (3,), device, (2, 0)))
    (answer,) = show.witness.answers(request)
    assert answer.outputs[0].data is device


def test_what_the_client_says_reaches_every_step():
    show = play(ensemble(CHAIN), *ALL)
    said = {"parameters": {"k": 1}, "priority": 3, "timeout_us": 9, "deadline_ns": 77, "id": "x", "headers": {"h": "v"}}
    request = show.ask(IN=[1], sequence=SequenceInfo(4, start=True), principal="somebody", **said)
    show.stage.answer(show.stage.calls[0], OUT=[3])
    for call in show.stage.calls:
        assert call.parent is request
        assert call.principal == "somebody"
        assert call.sequence == SequenceInfo(4, start=True)
        assert {name: getattr(call, name) for name in said} == said


def test_the_sequence_of_an_answer_is_that_of_the_steps_behind_it_and_of_the_ensemble_s_answer():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1], sequence=SequenceInfo(4, start=True))
    show.stage.answer(show.stage.calls[0], OUT=[3], parameters={"sequence_id": 9, "sequence_end": True, "own": 1})
    assert show.stage.calls[1].sequence == SequenceInfo(9, end=True)
    show.stage.answer(show.stage.calls[1], OUT=[3], parameters={"own": 1})
    (answer,) = show.witness.answers(request)
    assert answer.parameters == {"sequence_id": 9, "sequence_start": False, "sequence_end": True}


def test_a_sequence_of_a_wrong_type_fails_the_request():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], OUT=[3], parameters={"sequence_start": 1})
    with pytest.raises(InvalidArgument) as failed:
        show.answers(request)
    assert failed.value.message == (
        "in ensemble 'e', expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL (step 0, model 'a': 'MID' from 'IN')"
    )
    assert show.over()


def test_different_sequences_at_one_step_are_logged_and_the_first_is_used(caplog):
    show = play(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], L=[1], R=[2])
    for number in (1, 2):
        show.stage.answer(show.stage.calls[number], OUT=[0], parameters={"sequence_id": number})
    assert show.stage.calls[3].sequence == SequenceInfo(1)
    assert "come with different sequences" in caplog.text


def test_only_mapped_outputs_are_asked_of_a_member():
    show = play(ensemble(step("split", "IN", "L=OUT")), SPLIT)
    show.ask(IN=[1])
    assert show.stage.calls[0].outputs == {"L": OutputSpec("L")}


def test_steps_that_only_lead_to_outputs_nobody_asked_for_do_not_run():
    show = play(ensemble(CHAIN, outputs="OUT MID"), *ALL)
    request = show.ask(IN=[1], outputs={"MID": OutputSpec("MID")})
    show.stage.answer(show.stage.calls[0], OUT=[3])
    assert show.answers(request) == [{"MID": [3]}]
    assert names(show.stage.calls) == ["a"]
    request = show.ask(IN=[1], outputs={"OUT": OutputSpec("OUT")})
    show.stage.answer(show.stage.open[0], OUT=[3])
    show.stage.answer(show.stage.open[0], OUT=[4])
    assert show.answers(request) == [{"OUT": [4]}]


def test_a_member_s_output_that_nobody_asked_for_is_dropped():
    show = play(ensemble(step("split", "IN", "L=OUT")), SPLIT)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], L=[1], R=[2], UNKNOWN=[3])
    assert show.answers(request) == [{"OUT": [1]}]


def test_an_input_that_was_not_given_is_not_given_to_the_member():
    show = play(ensemble(step("join", "A=IN B=MORE", "OUT"), inputs="IN MORE"), JOIN)
    show.ask(IN=[1])
    assert list(show.stage.calls[0].inputs) == ["A"]


def test_an_output_that_a_member_left_out_is_not_given_to_the_next_one():
    show = play(ensemble(step("split", "IN", "L R") + step("join", "A=L B=R", "OUT")), SPLIT, JOIN)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], R=[2])
    assert list(show.stage.calls[1].inputs) == ["B"]
    show.stage.answer(show.stage.calls[1])
    assert show.answers(request) == [{}]


def test_a_batch_dimension_comes_and_goes_between_models_with_and_without():
    steps = step("plain", "IN", "OUT=MID") + step("batched", "IN=MID", "OUT")
    config = ensemble(steps, more="max_batch_size: 4")
    show = play(config, member("plain"), member("batched", batch=4))
    request = show.ask(IN=[[1, 2]], batch_size=1)
    plain = show.stage.calls[-1]
    assert plain.inputs["IN"].shape == (2,)
    show.stage.answer(plain, OUT=[1, 2])
    batched = show.stage.calls[-1]
    assert batched.inputs["IN"].shape == (1, 2)
    show.stage.answer(batched, OUT=[[1, 2]])
    (answer,) = show.witness.answers(request)
    assert answer.outputs[0].shape == (1, 2)


def test_a_failing_step_fails_the_request_once_and_says_which():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], OUT=[3])
    show.stage.fail(show.stage.calls[1], Internal("boom", FailureReason.BACKEND))
    (answer,) = show.witness.answers(request)
    assert answer.error is not None
    assert answer.error.message == "in ensemble 'e', boom (step 1, model 'b': 'OUT' from 'MID')"
    assert answer.error.code is Code.INTERNAL
    assert answer.error.reason is FailureReason.OTHER
    assert show.over()


def test_a_failure_ends_the_other_branches_before_it_is_told():
    show = play(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], L=[1], R=[2])
    show.stage.fail(show.stage.calls[1], Internal("boom"))
    assert names(show.stage.cancelled) == ["b"]
    assert show.witness.answers(request) == []
    show.stage.fail(show.stage.calls[2], Internal("late"))
    with pytest.raises(Internal, match=r"^in ensemble 'e', boom \(step 1, "):
        show.answers(request)
    assert names(show.stage.calls) == ["split", "a", "b"]
    assert show.over()


@pytest.mark.parametrize("refusal", [Unavailable("not now"), Internal("broken")])
def test_a_call_that_is_refused_fails_the_request(refusal):
    show = play(ensemble(CHAIN), *ALL)
    show.stage.refusal = refusal
    request = show.ask(IN=[1])
    with pytest.raises(type(refusal)) as failed:
        show.answers(request)
    assert failed.value.message == f"in ensemble 'e', {refusal.message} (step 0, model 'a': 'MID' from 'IN')"
    assert show.over()


def test_an_engine_that_breaks_is_an_incident_of_one_request(caplog):
    show = play(ensemble(CHAIN), *ALL)
    show.stage.refusal = ZeroDivisionError("bug")
    request = show.ask(IN=[1])
    with pytest.raises(Internal, match=r"^in ensemble 'e', unexpected error in the server, see incident .*step 0"):
        show.answers(request)
    assert "ZeroDivisionError" in caplog.text
    assert show.over()


def test_a_missing_member_is_named_before_anything_runs():
    show = play(ensemble(CHAIN), member("a"))
    with pytest.raises(NotFound, match=r"unknown model: 'b' is not found \(step 1, model 'b': 'OUT' from 'MID'\)$"):
        show.ask(IN=[1])
    assert show.stage.calls == []
    show.stage.configs["b"] = model_config(member("b"))
    request = show.ask(IN=[1])
    assert names(show.stage.calls) == ["a"]
    assert show.answers(request) == []


def test_an_output_that_a_member_left_out_is_left_out_and_logged_at_verbose_level_1(caplog):
    caplog.set_level("DEBUG", "tritonpy")
    show = play(ensemble(step("split", "IN", "L R"), outputs="L R"), SPLIT)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], L=[1])
    assert show.answers(request) == [{"L": [1]}]
    assert "Composing models did not output tensor R" in caplog.messages
    assert "Composing models did not output tensor L" not in caplog.messages


def test_a_member_that_ends_without_an_answer_leaves_the_ensemble_in_a_deadlock():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1], id="x")
    show.stage.end(show.stage.calls[0])
    with pytest.raises(InvalidArgument) as failed:
        show.answers(request)
    assert failed.value.message == (
        "in ensemble 'e', [request id: x] unexpected deadlock, at least one output is not set while no more ensemble steps can be "
        "made (no answer came from step 0, model 'a': 'MID' from 'IN')"
    )
    assert show.over()


def test_a_member_may_answer_first_and_end_then():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], OUT=[1], final=False)
    show.stage.answer(show.stage.calls[1], OUT=[2], final=False)
    show.stage.end(show.stage.calls[1])
    assert show.answers(request) == []
    show.stage.end(show.stage.calls[0])
    assert show.answers(request) == [{"OUT": [2]}]
    assert show.flags(request) == [(True, False)]


def test_steps_that_wait_for_each_other_are_a_deadlock():
    steps = step("a", "IN X=loop", "OUT=MID") + step("b", "IN=MID", "OUT") + step("c", "IN=MID", "OUT=loop")
    show = play(ensemble(steps), *ALL, member("c"))
    request = show.ask(IN=[1])
    with pytest.raises(InvalidArgument, match="unexpected deadlock"):
        show.answers(request)


def test_a_cancelled_request_begins_no_further_step():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1], id="x")
    request.cancel()
    assert names(show.stage.cancelled) == ["a"]
    show.stage.answer(show.stage.calls[0], OUT=[1])
    assert names(show.stage.calls) == ["a"]
    with pytest.raises(Cancelled, match=r"^in ensemble 'e', Request cancelled \(step 1, "):
        show.answers(request)
    assert show.over()


def test_the_cancellation_of_a_call_is_the_answer():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    request.cancel()
    show.stage.obey()
    (answer,) = show.witness.answers(request)
    assert answer.error is not None
    assert answer.error.reason is FailureReason.CANCELED
    assert answer.error.message == "in ensemble 'e', Request cancelled (step 0, model 'a': 'MID' from 'IN')"


def test_a_last_step_that_ignores_its_cancellation_still_answers():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], OUT=[1])
    request.cancel()
    show.stage.answer(show.stage.calls[1], OUT=[2])
    assert show.answers(request) == [{"OUT": [2]}]


def test_a_request_that_was_cancelled_before_it_came_is_answered():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1], cancelled=True)
    with pytest.raises(Cancelled, match="step 0"):
        show.answers(request)
    assert show.over()


def test_a_cancellation_after_the_end_does_nothing():
    show = play(ensemble(step("a", "IN", "OUT")), *ALL)
    request = show.ask(IN=[1])
    show.stage.answer(show.stage.calls[0], OUT=[1])
    request.cancel()
    assert show.flags(request) == [(True, False)]


def test_the_times_of_the_members_are_added_up():
    show = play(ensemble(CHAIN), *ALL)
    request = show.ask(IN=[1])
    for number in range(2):
        work = show.stage.calls[number].work
        work.input_ns, work.infer_ns, work.output_ns = 1 + number, 10, 100
        show.stage.answer(show.stage.calls[number], OUT=[1])
    assert request.work is not None
    assert (request.work.input_ns, request.work.infer_ns, request.work.output_ns) == (3, 20, 200)
    assert request.work.start_ns > 0


def test_a_thousand_steps_whose_answers_come_at_once_need_no_deep_stack():
    chain = "".join(step("a", f"IN=t{number}", f"OUT=t{number + 1}") for number in range(1000))
    show = play(ensemble(chain, inputs="t0", outputs="t1000"), *ALL, at_once=lambda _call: {"OUT": [7]})
    request = show.ask(t0=[1])
    assert show.answers(request) == [{"t1000": [7]}]
    assert len(show.stage.calls) == 1000
    assert show.over()


def test_a_buffer_lives_no_longer_than_its_last_consumer():
    chain = "".join(step("a", f"IN=t{number}", f"OUT=t{number + 1}") for number in range(3))
    show = play(ensemble(chain, inputs="t0", outputs="t3"), *ALL)
    show.ask(t0=[1])
    data = np.arange(4, dtype=np.int32)
    watched = weakref.ref(data)
    show.stage.give(show.stage.calls[0], Tensor("OUT", "INT32", (4,), data))
    del data
    assert watched() is not None
    second = show.stage.calls.pop()
    show.stage.give(second, ints("OUT", [1]))
    del second
    assert watched() is None


def test_nothing_is_left_of_a_request_that_was_answered():
    show = play(ensemble(CHAIN), *ALL, at_once=lambda _call: {"OUT": [7]})
    gc.collect()
    gc.disable()
    try:
        request = show.ask(IN=[1])
        data = weakref.ref(request.inputs["IN"].data)
        show.stage.calls.clear()
        show.witness.requests.clear()
        del request
        assert data() is None
    finally:
        gc.enable()
