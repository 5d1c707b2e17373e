from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from plugins.workers.tests.backend_process.wire import Wire, execution_of, response_of
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.windows import MAX_BYTES, MAX_RESPONSES, Windows
from tritonpy_types import InferResponse, Tensor
from tritonpy_types.errors import Internal, InvalidArgument, NotFound
from tritonpy_workers.backend_process.execution import ReceivedExecution
from tritonpy_workers.backend_process.response_frame import EMPTY, FINAL
from tritonpy_workers.backend_process.response_sender import ResponseSender


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


class Bench:
    """A response sender and its executions."""

    def __init__(self, wire: Wire) -> None:
        self.opened: dict[int, ReceivedExecution] = {}
        self.windows = Windows(wire.channel, RpcClient(wire.channel))
        self.sender = ResponseSender(wire.channel, self.opened, self.windows)

    def execution(self, number: int, first: int, count: int) -> ReceivedExecution:
        return execution_of(number, first, count, self.opened, self.sender)


@pytest.fixture
def bench(wire: Wire) -> Bench:
    return Bench(wire)


def test_final_responses_of_a_batch_share_a_frame_with_its_end(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 3))
    batch.respond([response_of(value) for value in (1, 2, 3)])
    assert wire.is_silent()
    bench.sender.finish(11, 22, False)
    found = wire.next_responses()
    assert found.done == [(7, 11, 22)]
    assert found.responses == [(100, FINAL), (101, FINAL), (102, FINAL)]
    assert found.rows == [{"OUT": [1]}, {"OUT": [2]}, {"OUT": [3]}]
    assert set(found.extras) == {"signatures"}
    assert not bench.opened


def test_other_responses_are_sent_immediately(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    batch.requests[1].respond(response_of(5))
    assert (wire.next_responses().numbers, wire.is_silent()) == ([101], True)
    batch.requests[0].respond(response_of(6))
    assert wire.is_silent()
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().numbers == [100]


def test_times_of_the_backend_are_sent_with_the_first_response(wire: Wire, bench: Bench) -> None:
    early = bench.sender.begin(bench.execution(7, 100, 2))
    early.stamp()
    early.requests[0].respond(response_of(5))
    assert wire.next_responses().extras["times"] == {"100": [early.input_end_ns, 0]}
    early.stamp()
    early.requests[1].respond(response_of(6))
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert "times" not in found.extras
    assert found.done == [(7, early.input_end_ns, early.infer_end_ns)]


def test_a_slow_execution_holds_no_responses(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 1))
    batch.respond([response_of(1)])
    bench.sender.stop_holding()
    assert wire.next_responses().numbers == [100]
    bench.sender.join(bench.execution(8, 200, 1)).respond([response_of(1)])
    assert wire.next_responses().numbers == [200]
    bench.sender.finish(1, 2, False)
    assert [number for number, _, _ in wire.next_responses().done] == [7, 8]
    bench.sender.begin(bench.execution(9, 300, 1)).respond([response_of(1)])
    assert wire.is_silent()  # the first response has ended the request


def test_consecutive_executions_share_a_frame(wire: Wire, bench: Bench) -> None:
    now = time.monotonic_ns()
    for number, more in ((1, True), (2, True), (3, False)):
        bench.sender.begin(bench.execution(number, 10 * number, 1)).respond([response_of(number)])
        bench.sender.finish(now, now + number, more)
    found = wire.next_responses()
    assert ([number for number, _, _ in found.done], found.numbers) == ([1, 2, 3], [10, 20, 30])
    assert wire.is_silent()


def test_no_response_waits_long_for_the_next_execution(wire: Wire, bench: Bench) -> None:
    for number, end_ns in ((1, 1_000_000), (2, 1_300_000)):
        bench.sender.begin(bench.execution(number, number, 1)).respond([response_of(number)])
        bench.sender.finish(end_ns - 1, end_ns, True)
        assert wire.is_silent() == (number == 1)


def test_responses_of_other_threads_are_sent_immediately_in_order(wire: Wire, bench: Bench) -> None:
    execution = bench.execution(7, 100, 1)
    batch = bench.sender.begin(execution)
    request = batch.requests[0]

    def answer() -> None:
        for value in range(3):
            request.respond(response_of(value, final=False))
        request.respond(InferResponse((), "caller", 1, empty=True))

    thread = Thread(target=answer)
    thread.start()
    found = [wire.next_responses() for _ in range(4)]
    thread.join()
    assert [each.responses for each in found] == [[(100, 0)]] * 3 + [[(100, FINAL | EMPTY)]]
    assert [each.rows for each in found] == [[{"OUT": [0]}], [{"OUT": [1]}], [{"OUT": [2]}], [{}]]
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().responses == []


def test_only_the_first_final_response_counts(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    first, second = batch.requests
    first.respond(response_of(1))
    first.respond(response_of(2))
    first.respond(response_of(3, final=False))
    second.respond(response_of(4))
    second.respond(response_of(5))
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().rows == [{"OUT": [1]}]
    assert wire.next_responses().rows == [{"OUT": [4]}]
    assert first.finished
    assert first.batch is None


def test_an_error_of_execute_fails_unfinished_and_joined_requests(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    bench.sender.join(bench.execution(8, 200, 1))
    batch.requests[0].respond(response_of(1))
    wire.next_responses()
    bench.sender.fail(NotFound("no such voice"))
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert (found.numbers, found.extras["errors"]) == (
        [101, 200],
        {"0": [2, "no such voice"], "1": [2, "no such voice"]},
    )
    assert [number for number, _, _ in found.done] == [7, 8]


@pytest.mark.parametrize(
    ("error", "payload"),
    [(ValueError("seven"), [1, "ValueError: seven"]), (KeyError(), [1, "KeyError"])],
)
def test_other_exceptions_are_internal_errors(
    wire: Wire, bench: Bench, error: Exception, payload: list[object]
) -> None:
    bench.sender.begin(bench.execution(7, 100, 1))
    bench.sender.fail(error)
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().extras["errors"] == {"0": payload}


def test_errors_and_parameters_belong_to_their_responses(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 3))
    batch.respond(
        [
            response_of(1, parameters={"tokens": 3}),
            InferResponse.failed(batch.requests[1], InvalidArgument("bad")),
            response_of(3),
        ]
    )
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert found.extras["errors"] == {"1": [3, "bad"]}
    assert found.extras["parameters"] == {"0": {"tokens": 3}}
    assert found.rows == [{"OUT": [1]}, {}, {"OUT": [3]}]


def test_a_batch_that_joins_while_nothing_runs_ends_immediately(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.join(bench.execution(7, 100, 1))
    assert [number for number, _, _ in wire.next_responses().done] == [7]
    batch.respond([response_of(1)])
    assert wire.next_responses().numbers == [100]


def test_rescheduled_requests_are_sent_with_the_end_of_their_execution(
    wire: Wire, bench: Bench
) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    one, other = batch.requests
    one.reschedule()
    one.reschedule()
    assert wire.next_responses().extras["reschedule"] == [100]
    one.respond(response_of(1))
    other.reschedule()
    assert wire.is_silent()
    bench.sender.fail(ValueError("after it was handed back"))
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert (found.extras["reschedule"], found.responses) == ([101], [])
    assert not bench.opened


def test_new_states_are_sent_once_with_the_first_final_response(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    batch.new_states["SUM"] = Tensor.from_numpy("SUM", np.array([[1], [2]], np.int32))
    batch.new_states["TEXT"] = Tensor.from_numpy("TEXT", np.array([b"a", b"bc"], np.object_))
    batch.requests[1].respond(response_of(5, final=False))
    assert "states" not in wire.next_responses().extras
    batch.requests[1].respond(response_of(5))
    found = wire.next_responses()
    assert found.extras["states"] == {"101": 1}
    assert found.rows == [{"OUT": [5]}, {"SUM": [[1], [2]], "TEXT": [b"a", b"bc"]}]
    batch.requests[0].respond(response_of(6))
    bench.sender.finish(1, 2, False)
    assert "states" not in wire.next_responses().extras


def test_new_states_are_sent_with_a_rescheduled_request(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 1))
    batch.new_states["SUM"] = Tensor.from_numpy("SUM", np.array([[1]], np.int32))
    batch.requests[0].reschedule()
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert (found.extras["states"], found.extras["reschedule"], found.rows) == (
        {"100": 1},
        [100],
        [{"SUM": [[1]]}],
    )


class _UnreadableDevice:
    """Data on a device that numpy cannot read."""

    def __dlpack__(self, **_options: object) -> object:
        raise BufferError("the device is gone")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_outputs_that_cannot_be_copied_from_their_device_are_an_error(
    wire: Wire, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 1))
    batch.respond(
        [InferResponse([Tensor("OUT", "INT32", (1,), _UnreadableDevice(), (2, 0))], "caller", 1)]
    )
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().extras["errors"] == {"0": [1, "BufferError: the device is gone"]}
    assert "the device is gone" in caplog.text


def test_without_memory_for_outputs_errors_are_sent(
    wire: Wire, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_size: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tritonpy_ipc.memory_file.create", no_room)
    batch = bench.sender.begin(bench.execution(7, 100, 2))
    large = Tensor.from_numpy("OUT", np.zeros(1 << 20, np.int32))
    empty = InferResponse((), "caller", 1)
    batch.respond([InferResponse([large], "caller", 1), empty])
    bench.sender.finish(1, 2, False)
    found = wire.next_responses()
    assert found.extras["errors"] == {
        "0": [1, "no memory for the outputs: [Errno 28] No space left on device"]
    }
    assert (found.numbers, found.rows, len(found.done)) == ([100, 101], [{}, {}], 1)


def test_an_error_keeps_its_class_by_its_code(wire: Wire, bench: Bench) -> None:
    batch = bench.sender.begin(bench.execution(7, 100, 1))
    batch.respond([InferResponse.failed(batch.requests[0], Internal("broken"))])
    bench.sender.finish(1, 2, False)
    assert wire.next_responses().extras["errors"] == {"0": [1, "broken"]}


def test_streaming_responses_use_up_the_window(bench: Bench) -> None:
    execution = bench.execution(1, 0, 2)
    one, other = execution.batch.requests
    for _ in range(MAX_RESPONSES):
        assert not bench.windows.full(0)
        one.respond(response_of(1, final=False))
    assert bench.windows.full(0)
    assert not bench.windows.full(1)
    large = InferResponse([Tensor.from_numpy("OUT", np.zeros(MAX_BYTES, np.uint8))], final=False)
    other.respond(large)
    assert bench.windows.full(1)
    one.respond(response_of(1))
    other.respond(response_of(1))
    assert not bench.windows


def test_the_window_of_a_rescheduled_request_is_removed(bench: Bench) -> None:
    execution = bench.execution(1, 0, 1)
    (request,) = execution.batch.requests
    request.respond(response_of(1, final=False))
    assert bench.windows
    request.reschedule()
    assert not bench.windows
