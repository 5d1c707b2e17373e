from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tritonpy import (
    Cancelled,
    Code,
    Internal,
    InvalidArgument,
    NotFound,
    OutputSpec,
    SequenceInfo,
    Tensor,
    Unavailable,
)
from tritonpy.metrics import FailureReason
from tritonpy_testing.parse import model_config

from .scripted_engine import ensemble, ints, make_harness, member, step

CHAIN = step("a", "IN", "OUT=MID") + step("b", "IN=MID", "OUT")
DIAMOND = (
    step("split", "IN", "L R")
    + step("a", "IN=L", "OUT=A")
    + step("b", "IN=R", "OUT=B")
    + step("join", "A B", "OUT")
)
ALL = tuple(member(name) for name in "ab")
SPLIT, JOIN = member("split", "IN", "L R"), member("join", "A B", "OUT")


def names(calls):
    return [call.model_name for call in calls]


def test_the_steps_of_a_chain_run_in_order():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1, 2])
    assert names(harness.engine.calls) == ["a"]
    harness.engine.respond(harness.engine.calls[0], OUT=[3])
    assert names(harness.engine.calls) == ["a", "b"]
    assert harness.engine.calls[1].inputs["IN"].numpy().tolist() == [3]
    assert harness.responses(request) == []
    harness.engine.respond(harness.engine.calls[1], OUT=[4])
    assert harness.responses(request) == [{"OUT": [4]}]
    assert harness.flags(request) == [(True, False)]
    assert harness.is_idle()


def test_branches_run_in_parallel_and_are_joined():
    harness = make_harness(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], L=[1], R=[2])
    assert names(harness.engine.in_flight) == ["a", "b"]
    harness.engine.respond(harness.engine.calls[2], OUT=[20])
    assert names(harness.engine.calls) == ["split", "a", "b"]
    harness.engine.respond(harness.engine.calls[1], OUT=[10])
    join = harness.engine.calls[3]
    assert {name: tensor.numpy().tolist() for name, tensor in join.inputs.items()} == {
        "A": [10],
        "B": [20],
    }
    harness.engine.respond(join, OUT=[30])
    assert harness.responses(request) == [{"OUT": [30]}]
    assert harness.is_idle()


def test_tensors_are_passed_without_a_copy():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    data = request.inputs["IN"].data
    assert harness.engine.calls[0].inputs["IN"] is request.inputs["IN"]
    made = ints("OUT", [5])
    harness.engine.respond_with(harness.engine.calls[0], made)
    assert harness.engine.calls[1].inputs["IN"].data is made.data
    assert data is request.inputs["IN"].data


def test_a_device_tensor_is_passed_unchanged():
    harness, device = make_harness(ensemble(CHAIN), *ALL), object()
    request = harness.send()
    harness.engine.respond_with(
        harness.engine.calls[0], Tensor("OUT", "INT32", (3,), device, (2, 0))
    )
    received = harness.engine.calls[1].inputs["IN"]
    assert received.data is device
    assert received.device == (2, 0)
    harness.engine.respond_with(
        harness.engine.calls[1], Tensor("OUT", "INT32", (3,), device, (2, 0))
    )
    (response,) = harness.recorder.responses(request)
    assert response.outputs[0].data is device


def test_request_fields_of_the_client_reach_every_step():
    harness = make_harness(ensemble(CHAIN), *ALL)
    fields = {
        "parameters": {"k": 1},
        "priority": 3,
        "timeout_us": 9,
        "deadline_ns": 77,
        "id": "x",
        "headers": {"h": "v"},
    }
    request = harness.send(
        IN=[1], sequence=SequenceInfo(4, start=True), principal="alice", **fields
    )
    harness.engine.respond(harness.engine.calls[0], OUT=[3])
    for call in harness.engine.calls:
        assert call.parent is request
        assert call.principal == "alice"
        assert call.sequence == SequenceInfo(4, start=True)
        assert {name: getattr(call, name) for name in fields} == fields


def test_the_sequence_of_a_response_applies_to_later_steps_and_the_final_response():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1], sequence=SequenceInfo(4, start=True))
    harness.engine.respond(
        harness.engine.calls[0],
        OUT=[3],
        parameters={"sequence_id": 9, "sequence_end": True, "own": 1},
    )
    assert harness.engine.calls[1].sequence == SequenceInfo(9, end=True)
    harness.engine.respond(harness.engine.calls[1], OUT=[3], parameters={"own": 1})
    (response,) = harness.recorder.responses(request)
    assert response.parameters == {"sequence_id": 9, "sequence_start": False, "sequence_end": True}


def test_a_sequence_of_a_wrong_type_fails_the_request():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], OUT=[3], parameters={"sequence_start": 1})
    with pytest.raises(InvalidArgument) as failed:
        harness.responses(request)
    assert failed.value.message == (
        "in ensemble 'e', expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL (step 0, model 'a': 'MID' from 'IN')"
    )
    assert harness.is_idle()


def test_different_sequences_at_one_step_are_logged_and_the_first_is_used(caplog):
    harness = make_harness(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], L=[1], R=[2])
    for number in (1, 2):
        harness.engine.respond(
            harness.engine.calls[number], OUT=[0], parameters={"sequence_id": number}
        )
    assert harness.engine.calls[3].sequence == SequenceInfo(1)
    assert "come with different sequences" in caplog.text


def test_only_mapped_outputs_are_requested_from_a_member():
    harness = make_harness(ensemble(step("split", "IN", "L=OUT")), SPLIT)
    harness.send(IN=[1])
    assert harness.engine.calls[0].outputs == {"L": OutputSpec("L")}


def test_steps_for_outputs_that_were_not_requested_do_not_run():
    harness = make_harness(ensemble(CHAIN, outputs="OUT MID"), *ALL)
    request = harness.send(IN=[1], outputs={"MID": OutputSpec("MID")})
    harness.engine.respond(harness.engine.calls[0], OUT=[3])
    assert harness.responses(request) == [{"MID": [3]}]
    assert names(harness.engine.calls) == ["a"]
    request = harness.send(IN=[1], outputs={"OUT": OutputSpec("OUT")})
    harness.engine.respond(harness.engine.in_flight[0], OUT=[3])
    harness.engine.respond(harness.engine.in_flight[0], OUT=[4])
    assert harness.responses(request) == [{"OUT": [4]}]


def test_a_member_output_that_was_not_requested_is_dropped():
    harness = make_harness(ensemble(step("split", "IN", "L=OUT")), SPLIT)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], L=[1], R=[2], UNKNOWN=[3])
    assert harness.responses(request) == [{"OUT": [1]}]


def test_a_missing_optional_input_is_not_sent_to_the_member():
    harness = make_harness(ensemble(step("join", "A=IN B=MORE", "OUT"), inputs="IN MORE"), JOIN)
    harness.send(IN=[1])
    assert list(harness.engine.calls[0].inputs) == ["A"]


def test_an_output_that_a_member_omitted_is_not_sent_to_the_next_one():
    harness = make_harness(
        ensemble(step("split", "IN", "L R") + step("join", "A=L B=R", "OUT")), SPLIT, JOIN
    )
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], R=[2])
    assert list(harness.engine.calls[1].inputs) == ["B"]
    harness.engine.respond(harness.engine.calls[1])
    assert harness.responses(request) == [{}]


def test_batch_dimensions_are_added_and_removed_between_models():
    steps = step("plain", "IN", "OUT=MID") + step("batched", "IN=MID", "OUT")
    config = ensemble(steps, more="max_batch_size: 4")
    harness = make_harness(config, member("plain"), member("batched", batch=4))
    request = harness.send(IN=[[1, 2]], batch_size=1)
    plain = harness.engine.calls[-1]
    assert plain.inputs["IN"].shape == (2,)
    harness.engine.respond(plain, OUT=[1, 2])
    batched = harness.engine.calls[-1]
    assert batched.inputs["IN"].shape == (1, 2)
    harness.engine.respond(batched, OUT=[[1, 2]])
    (response,) = harness.recorder.responses(request)
    assert response.outputs[0].shape == (1, 2)


def test_a_failing_step_fails_the_request_once_and_is_named():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], OUT=[3])
    harness.engine.fail(harness.engine.calls[1], Internal("boom", FailureReason.BACKEND))
    (response,) = harness.recorder.responses(request)
    assert response.error is not None
    assert response.error.message == "in ensemble 'e', boom (step 1, model 'b': 'OUT' from 'MID')"
    assert response.error.code is Code.INTERNAL
    assert response.error.reason is FailureReason.OTHER
    assert harness.is_idle()


def test_a_failure_is_sent_after_the_other_branches_ended():
    harness = make_harness(ensemble(DIAMOND), *ALL, SPLIT, JOIN)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], L=[1], R=[2])
    harness.engine.fail(harness.engine.calls[1], Internal("boom"))
    assert names(harness.engine.cancelled) == ["b"]
    assert harness.recorder.responses(request) == []
    harness.engine.fail(harness.engine.calls[2], Internal("late"))
    with pytest.raises(Internal, match=r"^in ensemble 'e', boom \(step 1, "):
        harness.responses(request)
    assert names(harness.engine.calls) == ["split", "a", "b"]
    assert harness.is_idle()


@pytest.mark.parametrize("refusal", [Unavailable("not now"), Internal("broken")])
def test_a_rejected_call_fails_the_request(refusal):
    harness = make_harness(ensemble(CHAIN), *ALL)
    harness.engine.refusal = refusal
    request = harness.send(IN=[1])
    with pytest.raises(type(refusal)) as failed:
        harness.responses(request)
    assert (
        failed.value.message
        == f"in ensemble 'e', {refusal.message} (step 0, model 'a': 'MID' from 'IN')"
    )
    assert harness.is_idle()


def test_an_engine_that_breaks_is_an_incident_of_one_request(caplog):
    harness = make_harness(ensemble(CHAIN), *ALL)
    harness.engine.refusal = ZeroDivisionError("bug")
    request = harness.send(IN=[1])
    with pytest.raises(
        Internal, match=r"^in ensemble 'e', unexpected error in the server, see error id .*step 0"
    ):
        harness.responses(request)
    assert "ZeroDivisionError" in caplog.text
    assert harness.is_idle()


def test_a_missing_member_is_named_before_anything_runs():
    harness = make_harness(ensemble(CHAIN), member("a"))
    with pytest.raises(
        NotFound, match=r"unknown model: 'b' is not found \(step 1, model 'b': 'OUT' from 'MID'\)$"
    ):
        harness.send(IN=[1])
    assert harness.engine.calls == []
    harness.engine.configs["b"] = model_config(member("b"))
    request = harness.send(IN=[1])
    assert names(harness.engine.calls) == ["a"]
    assert harness.responses(request) == []


def test_an_omitted_member_output_is_omitted_and_logged_at_verbose_level_1(caplog):
    caplog.set_level("DEBUG", "tritonpy")
    harness = make_harness(ensemble(step("split", "IN", "L R"), outputs="L R"), SPLIT)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], L=[1])
    assert harness.responses(request) == [{"L": [1]}]
    assert "Composing models did not output tensor R" in caplog.messages
    assert "Composing models did not output tensor L" not in caplog.messages


def test_a_member_that_ends_without_a_response_causes_a_deadlock_error():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1], id="x")
    harness.engine.end_stream(harness.engine.calls[0])
    with pytest.raises(InvalidArgument) as failed:
        harness.responses(request)
    assert failed.value.message == (
        "in ensemble 'e', [request id: x] unexpected deadlock, at least one output is not set while no more ensemble steps can be "
        "made (no response from step 0, model 'a': 'MID' from 'IN')"
    )
    assert harness.is_idle()


def test_a_member_may_send_its_final_flag_separately():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], OUT=[1], final=False)
    harness.engine.respond(harness.engine.calls[1], OUT=[2], final=False)
    harness.engine.end_stream(harness.engine.calls[1])
    assert harness.responses(request) == []
    harness.engine.end_stream(harness.engine.calls[0])
    assert harness.responses(request) == [{"OUT": [2]}]
    assert harness.flags(request) == [(True, False)]


def test_steps_that_wait_for_each_other_are_a_deadlock():
    steps = (
        step("a", "IN X=loop", "OUT=MID")
        + step("b", "IN=MID", "OUT")
        + step("c", "IN=MID", "OUT=loop")
    )
    harness = make_harness(ensemble(steps), *ALL, member("c"))
    request = harness.send(IN=[1])
    with pytest.raises(InvalidArgument, match="unexpected deadlock"):
        harness.responses(request)


def test_a_cancelled_request_starts_no_further_step():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1], id="x")
    request.cancel()
    assert names(harness.engine.cancelled) == ["a"]
    harness.engine.respond(harness.engine.calls[0], OUT=[1])
    assert names(harness.engine.calls) == ["a"]
    with pytest.raises(Cancelled, match=r"^in ensemble 'e', Request cancelled \(step 1, "):
        harness.responses(request)
    assert harness.is_idle()


def test_the_cancellation_of_a_call_is_the_final_response():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    request.cancel()
    harness.engine.fail_cancelled()
    (response,) = harness.recorder.responses(request)
    assert response.error is not None
    assert response.error.reason is FailureReason.CANCELED
    assert (
        response.error.message
        == "in ensemble 'e', Request cancelled (step 0, model 'a': 'MID' from 'IN')"
    )


def test_a_last_step_that_ignores_its_cancellation_still_responds():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], OUT=[1])
    request.cancel()
    harness.engine.respond(harness.engine.calls[1], OUT=[2])
    assert harness.responses(request) == [{"OUT": [2]}]


def test_a_request_cancelled_before_it_was_queued_gets_a_response():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1], cancelled=True)
    with pytest.raises(Cancelled, match="step 0"):
        harness.responses(request)
    assert harness.is_idle()


def test_a_cancellation_after_the_end_does_nothing():
    harness = make_harness(ensemble(step("a", "IN", "OUT")), *ALL)
    request = harness.send(IN=[1])
    harness.engine.respond(harness.engine.calls[0], OUT=[1])
    request.cancel()
    assert harness.flags(request) == [(True, False)]


def test_compute_times_of_members_are_summed():
    harness = make_harness(ensemble(CHAIN), *ALL)
    request = harness.send(IN=[1])
    for number in range(2):
        work = harness.engine.calls[number].compute_times
        work.input_ns, work.infer_ns, work.output_ns = 1 + number, 10, 100
        harness.engine.respond(harness.engine.calls[number], OUT=[1])
    assert request.compute_times is not None
    assert (
        request.compute_times.input_ns,
        request.compute_times.infer_ns,
        request.compute_times.output_ns,
    ) == (
        3,
        20,
        200,
    )
    assert request.compute_times.start_ns > 0


def test_a_thousand_immediate_responses_need_no_deep_stack():
    chain = "".join(step("a", f"IN=t{number}", f"OUT=t{number + 1}") for number in range(1000))
    harness = make_harness(
        ensemble(chain, inputs="t0", outputs="t1000"), *ALL, immediate=lambda _call: {"OUT": [7]}
    )
    request = harness.send(t0=[1])
    assert harness.responses(request) == [{"t1000": [7]}]
    assert len(harness.engine.calls) == 1000
    assert harness.is_idle()


def test_a_buffer_is_released_after_its_last_use():
    chain = "".join(step("a", f"IN=t{number}", f"OUT=t{number + 1}") for number in range(3))
    harness = make_harness(ensemble(chain, inputs="t0", outputs="t3"), *ALL)
    harness.send(t0=[1])
    data = np.arange(4, dtype=np.int32)
    watched = weakref.ref(data)
    harness.engine.respond_with(harness.engine.calls[0], Tensor("OUT", "INT32", (4,), data))
    del data
    assert watched() is not None
    second = harness.engine.calls.pop()
    harness.engine.respond_with(second, ints("OUT", [1]))
    del second
    assert watched() is None


def test_a_finished_request_leaves_no_references():
    harness = make_harness(ensemble(CHAIN), *ALL, immediate=lambda _call: {"OUT": [7]})
    gc.collect()
    gc.disable()
    try:
        request = harness.send(IN=[1])
        data = weakref.ref(request.inputs["IN"].data)
        harness.engine.calls.clear()
        harness.recorder.requests.clear()
        del request
        assert data() is None
    finally:
        gc.enable()
