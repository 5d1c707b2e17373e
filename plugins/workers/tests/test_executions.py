from __future__ import annotations

from contextlib import asynccontextmanager

import numpy as np
import pytest

from libs.engine_rpc.tests.test_connection import Ends
from plugins.workers.tests.fake_worker import model_context, on_loop, tensor
from plugins.workers.tests.scripted_worker import EMPTY, FINAL
from plugins.workers.tests.worker_model import check_leaks
from tritonpy_ipc import Kind, ProtocolError
from tritonpy_ipc.blocks import BlockRow
from tritonpy_ipc.sequence_frame import read_sequence_frame
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import Batch, InferRequest, OutputSpec, SequenceInfo, Tensor
from tritonpy_types.errors import Cancelled, Code, FailureReason, InvalidArgument
from tritonpy_workers.executions import Executions


class ExecutionsBench:
    """Executions with a socket, and a recorder for the responses."""

    def __init__(self, engine):
        self.ends = Ends()
        self.executions = Executions(model_context(engine), self.ends.connection)
        self.recorder = RecordingSink()
        self.over = []

    def batch(self, *values, **fields):
        requests = [
            InferRequest(
                "m",
                {"IN": tensor(value)},
                self.recorder.sink,
                owner=self.recorder,
                id=f"r{value}",
                **fields,
            )
            for value in values
        ]
        batch = Batch(requests)
        for request in requests:
            request.batch = batch
        return batch

    def frame_parts(self):
        """Return the frame that the worker received, its rows and the requested outputs."""
        (frame,) = self.ends.read()
        count = frame.words[0]
        at = 2 + 2 * count
        if frame.kind == Kind.EXECUTE_SEQUENCE:
            self.sequence_frame, at = read_sequence_frame(
                frame.words, at, frame.words[2 : at - 1 : 2], frame.extras.get("sequences", {})
            )
        rows, requested = self.ends.endpoint.rows(frame, at, Tensor)
        return frame, rows, requested

    def take(self, words, rows=(), **extras):
        """Let the worker send RESPONSES."""
        data, _ = self.ends.endpoint.compose(Kind.RESPONSES, words, rows=list(rows), extras=extras)
        (frame,) = self.ends.connection._endpoint.feed(data)
        self.executions.take(frame, self.over.extend)

    def answers(self, batch):
        return [self.recorder.responses(request) for request in batch.requests]


@asynccontextmanager
async def desk():
    with ToyEngine() as engine:
        async with check_leaks():
            it = ExecutionsBench(engine)
            yield it
            it.ends.connection.close()
            it.ends.socket.close()
            it.ends.endpoint.close()


def out(value):
    return [tensor(value, "OUT")]


@on_loop
async def test_batches_are_sent_in_one_frame_with_unique_numbers():
    async with desk() as it:
        assert it.executions.send([it.batch(1, 2), it.batch(3)]) == [1, 2]
        frame, rows, requested = it.frame_parts()
        assert frame.words[:6] == (2, 1, 2, 2, 1, 0)
        assert [row[0].data.tolist() for row in rows] == [[1], [2], [3]]
        assert requested == [None] * 3
        assert it.executions.send([it.batch(4)]) == [3]
        frame, _, _ = it.frame_parts()
        assert frame.words[:4] == (1, 3, 1, 3)
        assert list(it.executions.running) == [1, 2, 3]
        assert list(it.executions.open) == [0, 1, 2, 3]


@on_loop
async def test_only_optional_fields_are_sent_per_request():
    async with desk() as it:
        plain = it.batch(1)
        plain.requests[0].id = ""
        it.executions.send([plain])
        assert set(it.frame_parts()[0].extras) == {"signatures"}
        it.executions.send([it.batch(1)])
        assert it.frame_parts()[0].extras == {"ids": ["r1"]}
        full = it.batch(
            7,
            parameters={"a": 1, "b": "c"},
            sequence=SequenceInfo("s", start=True),
            timeout_us=5,
            priority=2,
            batch_size=3,
            trace="00-ab-cd-01",
            outputs={"OUT": OutputSpec("OUT")},
        )
        it.executions.send([it.batch(1), full])
        frame, _, requested = it.frame_parts()
        assert frame.extras["requests"] == {
            "1": {
                "parameters": {"a": 1, "b": "c"},
                "timeout_us": 5,
                "priority": 2,
                "batch_size": 3,
                "trace": "00-ab-cd-01",
            }
        }
        assert it.sequence_frame == [
            ((0, 0, 0), [(0, False, False, 0)]),
            ((0, 0, 0), [("s", True, False, 0)]),
        ]
        assert requested == [None, ("OUT",)]


@on_loop
async def test_scheduler_data_follows_the_requests():
    async with desk() as it:
        plain, added = it.batch(1), it.batch(2)
        (request,) = added.requests
        added.slots = [request, None]
        added.controls = [tensor([1, 0], "START"), tensor([1, 0], "READY")]
        added.states = [tensor([[5], [6]], "STATE")]
        added.state_outputs = ["STATE_OUT"]
        it.executions.send([plain, added])
        frame, rows, _ = it.frame_parts()
        assert frame.extras["state_outputs"] == {"1": ["STATE_OUT"]}
        assert it.sequence_frame == [
            ((0, 0, 0), [(0, False, False, 0)]),
            ((2, 2, 1), [(0, False, False, 0)]),
        ]
        assert [len(row) for row in rows] == [1, 1, 3]
        assert [each.name for each in rows[2]] == ["START", "READY", "STATE"]


@on_loop
async def test_responses_go_to_their_requests_with_the_times_of_the_execution():
    async with desk() as it:
        one, two = it.batch(1, 2), it.batch(3)
        it.executions.send([one, two])
        it.take([1, 1, 100, 250, 1, 0, 2, FINAL], [out(10), out(20)])
        ((first,), (second,)) = it.answers(one)
        assert [first.outputs[0].numpy().tolist(), second.outputs[0].numpy().tolist()] == [
            [10],
            [20],
        ]
        assert (first.model_name, first.model_version, first.id, first.final, first.empty) == (
            "caller",
            1,
            "r1",
            True,
            False,
        )
        assert (one.input_end_ns, one.infer_end_ns, one.executing) == (100, 250, False)
        assert [each.batch for each in it.over] == [one]
        assert (list(it.executions.running), list(it.executions.open)) == ([2], [2])
        assert two.executing
        it.take([1, 2, 1, 2, 1, 2, 1, FINAL], [out(30)])
        it.recorder.check(*one.requests, *two.requests)


@on_loop
async def test_the_end_of_an_execution_is_reported_before_its_responses():
    async with desk() as it:
        batch = it.batch(1)
        it.executions.send([batch])
        seen = []
        data, _ = it.ends.endpoint.compose(
            Kind.RESPONSES, [1, 1, 1, 2, 1, 0, 1, FINAL], rows=[out(1)]
        )
        (frame,) = it.ends.connection._endpoint.feed(data)
        it.executions.take(frame, lambda over: seen.append((len(over), it.answers(batch))))
        assert seen == [(1, [[]])]
        it.recorder.check(*batch.requests)


@on_loop
async def test_a_decoupled_request_stays_in_flight_until_its_final_response():
    async with desk() as it:
        batch = it.batch(1)
        it.executions.send([batch])
        it.take([1, 1, 1, 2, 1, 0, 1, 0], [out(10)])
        it.take([0, 1, 0, 1, 0], [out(11)])
        it.take([0, 2, 0, 1, 0, 0, 1, FINAL | EMPTY], [out(12), []])
        ((*some, last),) = it.answers(batch)
        assert [each.outputs[0].numpy().tolist() for each in some] == [[10], [11], [12]]
        assert (last.empty, last.final, list(last.outputs)) == (True, True, [])
        assert not it.executions.open
        it.recorder.check(*batch.requests)


@on_loop
async def test_errors_and_parameters_belong_to_their_response():
    async with desk() as it:
        batch = it.batch(1, 2, 3)
        it.executions.send([batch])
        it.take(
            [1, 1, 1, 2, 1, 0, 3, FINAL],
            [[], out(20), []],
            errors={"0": [int(Code.INVALID_ARG), "too small"], "2": [int(Code.CANCELLED), "gone"]},
            parameters={"1": {"a": True}},
        )
        ((first,), (second,), (third,)) = it.answers(batch)
        assert isinstance(first.error, InvalidArgument)
        assert (first.error.message, first.error.reason) == ("too small", FailureReason.BACKEND)
        assert (second.error, second.parameters) == (None, {"a": True})
        assert isinstance(third.error, Cancelled)
        assert third.error.reason is FailureReason.CANCELED


@on_loop
async def test_rescheduled_requests_are_removed_from_the_worker():
    async with desk() as it:
        batch = it.batch(1, 2)
        it.executions.send([batch])
        it.take([1, 1, 1, 2, 1, 1, 1, FINAL], [out(2)], reschedule=[0, 99])
        assert it.recorder.rescheduled == batch.requests[:1]
        assert not it.executions.open


@on_loop
async def test_responses_for_abandoned_requests_are_dropped():
    async with desk() as it:
        batch, answered = it.batch(1, 2), it.batch(3)
        it.executions.send([batch, answered])
        answered.requests[0].finished = True
        assert it.executions.abandon() == batch.requests
        assert (it.executions.open, it.executions.running, batch.executing) == ({}, {}, False)
        it.take([0, 1, 0, 3, FINAL], [out(1), out(2), out(3)])
        assert it.answers(batch) == [[], []]
        with pytest.raises(ProtocolError, match="execution 1 ended but was not running"):
            it.take([1, 1, 1, 2, 0])


@on_loop
async def test_new_states_go_to_their_batch():
    async with desk() as it:
        batch = it.batch(1)
        it.executions.send([batch])
        it.take(
            [1, 1, 1, 2, 1, 0, 1, FINAL], [out(1), [tensor([[9]], "STATE_OUT")]], states={"0": 1}
        )
        assert batch.new_states["STATE_OUT"].numpy().tolist() == [[9]]


@on_loop
async def test_a_cancelled_request_that_has_not_begun_fails_immediately():
    async with desk() as it:
        running, behind = it.batch(1), it.batch(2, 3)
        it.executions.send([running, behind])
        it.executions.cancel(running.requests[0])
        assert it.answers(running) == [[]]
        it.executions.cancel(behind.requests[0])
        ((answer,), others) = it.answers(behind)
        assert (str(answer.error), answer.error.reason, others) == (
            "Request cancelled",
            FailureReason.CANCELED,
            [],
        )
        # Further responses of the worker are ignored.
        it.take([2, 1, 0, 1, 2, 1, 2, 1, 1, 2, FINAL], [out(5), out(6)])
        assert [len(answers) for answers in it.answers(behind)] == [1, 1]


@on_loop
async def test_a_cancelled_request_that_joined_is_left_to_the_backend():
    async with desk() as it:
        running, joined = it.batch(1), it.batch(2)
        it.executions.send([running])
        it.executions.send([joined], joins=True)
        it.executions.cancel(joined.requests[0])
        assert it.answers(joined) == [[]]
        it.executions.abandon()


@on_loop
async def test_a_cancellation_names_the_number_of_the_request():
    async with desk() as it:
        batch = it.batch(1, 2)
        it.executions.send([batch])
        it.frame_parts()
        it.executions.cancel(batch.requests[1])
        (frame,) = it.ends.read()
        assert (frame.kind, frame.words) == (Kind.CANCEL, (1,))
        it.executions.cancel(it.batch(3).requests[0])
        assert not it.executions._connection.unsent
        it.ends.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            it.ends.read()


@on_loop
async def test_a_batch_that_cannot_be_sent_leaves_no_trace(monkeypatch):
    async with desk() as it:
        with pytest.raises(TypeError):
            it.executions.send([it.batch(1, parameters={"a": object()})])
        assert (it.executions.running, it.executions.open) == ({}, {})
        batch = it.batch(2)
        assert it.executions.send([batch]) == [1]
        assert it.frame_parts()[0].words[:4] == (1, 1, 1, 0)
        it.take([1, 1, 1, 2, 1, 0, 1, FINAL], [out(2)])
        it.recorder.check(*batch.requests)


@on_loop
async def test_tensors_of_another_device_are_copied_to_the_host():
    class DlpackArray:
        """An array that reports its device through DLPack only."""

        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **named):
            return self._array.__dlpack__(**named)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    async with desk() as it:
        batch = it.batch(1)
        far = Tensor("IN", "INT32", (2,), DlpackArray(np.array([3, 4], np.int32)), device=(2, 0))
        batch.requests[0].inputs = {"IN": far}
        it.executions.send([batch])
        _, ((got,),), _ = it.frame_parts()
        assert got.data.tolist() == [3, 4]


BROKEN = {
    "nothing": [],
    "no end of the executions": [2**60],
    "no answers": [0],
    "an execution that never was": [1, 7, 1, 2, 0],
    "an execution that ends twice": [2, 1, 1, 2, 1, 1, 2, 0],
    "runs without end": [0, 2**60],
    "a run that is cut": [0, 1, 0],
    "more answers than rows": [0, 1, 0, 2, 1],
    "answers without end": [0, 1, 0, 2**63, 1],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_invalid_responses_are_refused_and_not_delivered(kind):
    @on_loop
    async def test():
        async with desk() as it:
            batch = it.batch(1)
            it.executions.send([batch])
            with pytest.raises((ProtocolError, KeyError)):
                it.take(BROKEN[kind])
            assert it.answers(batch) == [[]]
            assert it.executions.abandon() == batch.requests

    test()


@on_loop
async def test_outputs_stay_in_their_block_for_a_forwarding_sink():
    async with desk() as it:
        batch = it.batch(1, 2)
        it.recorder.sink.passes_on = True
        it.executions.send([batch])
        it.take([1, 1, 10, 20, 1, 0, 2, FINAL], [out(11), out(12)])
        answers = [response for (response,) in it.answers(batch)]
        assert all(isinstance(response.outputs, BlockRow) for response in answers)
        assert [response.outputs[0].data.tolist() for response in answers] == [[11], [12]]


@on_loop
async def test_outputs_for_other_sinks_are_tensors():
    async with desk() as it:
        batch = it.batch(1, 2)
        it.executions.send([batch])
        it.take([1, 1, 10, 20, 1, 0, 2, FINAL], [out(11), out(12)])
        assert not any(isinstance(response.outputs, BlockRow) for (response,) in it.answers(batch))
