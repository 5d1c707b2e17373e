from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tritonpy_types import Batch, InferRequest, InferResponse, TraceLevel, synthetic_parent
from tritonpy_types.errors import Internal
from tritonpy_types.trace import TensorCopy

from .families import answer, family, request, tensor


def names(trace):
    return [note.activity if isinstance(note, TensorCopy) else note.name for note in trace.notes]


COMPUTED = [
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "REQUEST_END",
]


def test_a_request_is_recorded_from_arrival_to_end():
    trace = family().trace()
    trace.stamp("HTTP_RECV_START", 5)
    request_ = request(trace, request_id="an id")
    trace.begin("m", 3, request_)
    trace.responded(request_, answer(tensor("OUT")), 60)
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
    [
        (TraceLevel.TIMESTAMPS, {"TimeStamp"}),
        (TraceLevel.TENSORS, {"TensorCopy"}),
        (TraceLevel.OFF, set()),
    ],
)
def test_only_the_selected_levels_are_recorded(level, kinds):
    trace = family(level).trace()
    request_ = request(trace)
    trace.begin("m", 1, request_)
    trace.responded(request_, answer(tensor("OUT")), 60)
    assert {type(note).__name__ for note in trace.notes} == kinds


def test_a_request_that_begins_twice_is_recorded_once():
    trace = family().trace()
    trace.stamp("HTTP_RECV_START")
    trace.begin("old", 1, request(trace))
    trace.begin("new", 2, request(trace))
    assert names(trace) == ["HTTP_RECV_START", "REQUEST_START", "QUEUE_START", "TENSOR_QUEUE_INPUT"]
    assert (trace.model_name, trace.model_version) == ("new", 2)


def test_tensors_are_copied_immediately():
    trace = family().trace()
    data = np.array([1, 2], np.int32)
    tensor_ = tensor()
    tensor_.data = data
    trace.tensors("TENSOR_QUEUE_INPUT", [tensor_])
    data[:] = 9
    (note,) = trace.notes
    assert note.tensor.data.tolist() == [1, 2]


def test_a_request_that_never_ran_has_no_compute_times():
    trace = family(TraceLevel.TIMESTAMPS).trace()
    request_ = request(trace, executed=False)
    trace.begin("m", 1, request_)
    trace.responded(request_, InferResponse.failed(request_, Internal("refused")), 60)
    assert names(trace) == [
        "REQUEST_START",
        "QUEUE_START",
        "INFER_RESPONSE_COMPLETE",
        "REQUEST_END",
    ]


def test_a_stream_records_the_tensors_of_each_response_and_the_times_once():
    trace = family().trace()
    request_ = request(trace)
    trace.begin("m", 1, request_)
    for _ in range(2):
        trace.responded(request_, answer(tensor("OUT"), final=False), 60)
    trace.responded(request_, answer(empty=True), 70)
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


def test_a_child_ends_with_its_final_response_and_completes_no_response():
    ended = []
    root = family(TraceLevel.TIMESTAMPS, ended=ended.append).trace()
    child = root.spawn()
    request_ = request(child)
    root.end()
    child.begin("called", 1, request_)
    child.responded(request_, answer(final=False), 60)
    assert ended == []
    child.responded(request_, answer(), 70)
    assert len(ended) == 1
    assert "INFER_RESPONSE_COMPLETE" not in names(child)


def test_an_ended_trace_has_no_more_children():
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


def test_every_trace_has_a_unique_number():
    assert len({family().trace().id for _ in range(5)} | {0}) == 6


def test_the_text_of_a_trace_is_its_context():
    trace = family().trace()
    assert str(trace) == ""
    trace.context = '{"traceparent":"…"}'
    assert str(trace) == trace.context


def test_a_synthetic_parent_represents_an_execution_and_discards_responses():
    batch = Batch([InferRequest("m", {}, None) for _ in range(2)])
    caller = synthetic_parent("m", batch)
    assert caller.batch is batch
    assert caller.parent is None
    assert caller not in batch.requests
    caller.respond(InferResponse(()))
    caller.cancel()
    assert caller.cancelled
