from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tritonpy.errors import Internal
from tritonpy.types import InferResponse, TraceLevel
from tritonpy.types.trace import TensorCopy

from ..tracing.families import answer, family, request, tensor


def names(trace):
    return [note.activity if isinstance(note, TensorCopy) else note.name for note in trace.notes]


COMPUTED = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END"]


def test_a_request_is_noted_from_its_arrival_to_its_end():
    trace = family().trace()
    trace.stamp("HTTP_RECV_START", 5)
    asked = request(trace, request_id="an id")
    trace.begin("m", 3, asked)
    trace.answered(asked, answer(tensor("OUT")), 60)
    assert names(trace) == [
        "HTTP_RECV_START", "REQUEST_START", "QUEUE_START", "TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT",
        "INFER_RESPONSE_COMPLETE", *COMPUTED,
    ]  # fmt: skip
    assert (trace.model_name, trace.model_version, trace.request_id) == ("m", 3, "an id")
    stamps = dict(trace.stamps())
    assert [stamps[name] for name in COMPUTED] == [30, 40, 50, 60, 60]
    assert stamps["QUEUE_START"] == 20


@pytest.mark.parametrize(
    ("level", "kinds"),
    [(TraceLevel.TIMESTAMPS, {"TimeStamp"}), (TraceLevel.TENSORS, {"TensorCopy"}), (TraceLevel.OFF, set())],
)
def test_only_what_the_level_asks_for_is_noted(level, kinds):
    trace = family(level).trace()
    asked = request(trace)
    trace.begin("m", 1, asked)
    trace.answered(asked, answer(tensor("OUT")), 60)
    assert {type(note).__name__ for note in trace.notes} == kinds


def test_a_request_that_begins_again_is_noted_once():
    trace = family().trace()
    trace.stamp("HTTP_RECV_START")
    trace.begin("old", 1, request(trace))
    trace.begin("new", 2, request(trace))
    assert names(trace) == ["HTTP_RECV_START", "REQUEST_START", "QUEUE_START", "TENSOR_QUEUE_INPUT"]
    assert (trace.model_name, trace.model_version) == ("new", 2)


def test_tensors_are_copied_at_once():
    trace = family().trace()
    data = np.array([1, 2], np.int32)
    lent = tensor()
    lent.data = data
    trace.tensors("TENSOR_QUEUE_INPUT", [lent])
    data[:] = 9
    (note,) = trace.notes
    assert note.tensor.data.tolist() == [1, 2]


def test_a_request_that_never_ran_has_no_times_of_computing():
    trace = family(TraceLevel.TIMESTAMPS).trace()
    asked = request(trace, executed=False)
    trace.begin("m", 1, asked)
    trace.answered(asked, InferResponse.failed(asked, Internal("refused")), 60)
    assert names(trace) == ["REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "REQUEST_END"]


def test_a_stream_notes_the_tensors_of_each_answer_and_the_times_once():
    trace = family().trace()
    asked = request(trace)
    trace.begin("m", 1, asked)
    for _ in range(2):
        trace.answered(asked, answer(tensor("OUT"), final=False), 60)
    trace.answered(asked, answer(empty=True), 70)
    assert names(trace).count("TENSOR_BACKEND_OUTPUT") == 2
    assert names(trace).count("INFER_RESPONSE_COMPLETE") == names(trace).count("COMPUTE_END") == 1


def test_a_family_ends_with_its_last_member():
    ended = []
    made = family(ended=ended.append)
    root = made.trace()
    child = root.spawn()
    grandchild = child.spawn()
    assert [trace.parent_id for trace in made.traces] == [0, root.id, child.id]
    for trace in (root, grandchild):
        trace.end()
    assert ended == []
    child.end()
    assert ended == [made]
    assert made.ended_ns >= made.begun_ns


def test_ending_twice_counts_once():
    ended = []
    root = family(ended=ended.append).trace()
    root.spawn()
    root.end()
    root.end()
    assert ended == []


def test_a_child_ends_with_its_final_answer_and_completes_no_response():
    ended = []
    root = family(TraceLevel.TIMESTAMPS, ended=ended.append).trace()
    child = root.spawn()
    asked = request(child)
    root.end()
    child.begin("called", 1, asked)
    child.answered(asked, answer(final=False), 60)
    assert ended == []
    child.answered(asked, answer(), 70)
    assert len(ended) == 1
    assert "INFER_RESPONSE_COMPLETE" not in names(child)


def test_a_trace_that_is_over_has_no_more_children():
    root = family().trace()
    root.end()
    assert root.spawn() is None


def test_members_that_end_at_the_same_time_end_the_family_once():
    for _ in range(50):
        ended = []
        root = family(ended=ended.append).trace()
        members = [root, *(root.spawn() for _ in range(7))]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda trace: trace.end(), members))
        assert len(ended) == 1


def test_every_trace_has_a_number_of_its_own():
    assert len({family().trace().id for _ in range(5)} | {0}) == 6


def test_the_text_of_a_trace_is_its_context():
    trace = family().trace()
    assert str(trace) == ""
    trace.context = '{"traceparent":"…"}'
    assert str(trace) == trace.context
