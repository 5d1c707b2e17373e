from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from core.tests.runners.workers.backend_process.wire import Wire, execution_of, response_of
from tritonpy.errors import Internal, InvalidArgument, NotFound
from tritonpy.ipc.questions import Questions
from tritonpy.ipc.windows import MAX_ANSWERS, MAX_BYTES, Windows
from tritonpy.runners.workers.backend_process.answer_frame import EMPTY, FINAL
from tritonpy.runners.workers.backend_process.answers import Answers
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.types import InferResponse, Tensor


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


class Bench:
    """Answers, with executions to give."""

    def __init__(self, wire: Wire) -> None:
        self.opened: dict[int, Execution] = {}
        self.windows = Windows(wire.channel, Questions(wire.channel))
        self.answers = Answers(wire.channel, self.opened, self.windows)

    def execution(self, number: int, first: int, count: int) -> Execution:
        return execution_of(number, first, count, self.opened, self.answers)


@pytest.fixture
def bench(wire: Wire) -> Bench:
    return Bench(wire)


def test_the_answers_that_complete_a_batch_wait_for_its_end_and_share_its_frame(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 3))
    batch.respond([response_of(value) for value in (1, 2, 3)])
    assert wire.is_silent()
    bench.answers.over(11, 22, False)
    found = wire.answered()
    assert found.done == [(7, 11, 22)]
    assert found.answers == [(100, FINAL), (101, FINAL), (102, FINAL)]
    assert found.rows == [{"OUT": [1]}, {"OUT": [2]}, {"OUT": [3]}]
    assert set(found.extras) == {"signatures"}
    assert not bench.opened


def test_other_answers_leave_at_once(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    batch.requests[1].respond(response_of(5))
    assert (wire.answered().numbers, wire.is_silent()) == ([101], True)
    batch.requests[0].respond(response_of(6))
    assert wire.is_silent()
    bench.answers.over(1, 2, False)
    assert wire.answered().numbers == [100]


def test_the_times_that_the_backend_stamped_go_with_what_is_counted_first(wire: Wire, bench: Bench) -> None:
    early = bench.answers.begin(bench.execution(7, 100, 2))
    early.stamp()
    early.requests[0].respond(response_of(5))
    assert wire.answered().extras["times"] == {"100": [early.input_end_ns, 0]}
    early.stamp()
    early.requests[1].respond(response_of(6))
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert "times" not in found.extras
    assert found.done == [(7, early.input_end_ns, early.infer_end_ns)]


def test_an_execution_that_takes_its_time_holds_nothing(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 1))
    batch.respond([response_of(1)])
    bench.answers.hurry()
    assert wire.answered().numbers == [100]
    bench.answers.join(bench.execution(8, 200, 1)).respond([response_of(1)])
    assert wire.answered().numbers == [200]
    bench.answers.over(1, 2, False)
    assert [number for number, _, _ in wire.answered().done] == [7, 8]
    bench.answers.begin(bench.execution(9, 300, 1)).respond([response_of(1)])
    assert wire.is_silent()  # that is over


def test_executions_that_follow_each_other_at_once_share_a_frame(wire: Wire, bench: Bench) -> None:
    now = time.monotonic_ns()
    for number, more in ((1, True), (2, True), (3, False)):
        bench.answers.begin(bench.execution(number, 10 * number, 1)).respond([response_of(number)])
        bench.answers.over(now, now + number, more)
    found = wire.answered()
    assert ([number for number, _, _ in found.done], found.numbers) == ([1, 2, 3], [10, 20, 30])
    assert wire.is_silent()


def test_no_answer_waits_long_for_those_of_the_next_execution(wire: Wire, bench: Bench) -> None:
    for number, end_ns in ((1, 1_000_000), (2, 1_300_000)):
        bench.answers.begin(bench.execution(number, number, 1)).respond([response_of(number)])
        bench.answers.over(end_ns - 1, end_ns, True)
        assert wire.is_silent() == (number == 1)


def test_answers_of_other_threads_leave_at_once_and_in_their_order(wire: Wire, bench: Bench) -> None:
    execution = bench.execution(7, 100, 1)
    batch = bench.answers.begin(execution)
    request = batch.requests[0]

    def answer() -> None:
        for value in range(3):
            request.respond(response_of(value, final=False))
        request.respond(InferResponse((), "caller", 1, empty=True))

    thread = Thread(target=answer)
    thread.start()
    found = [wire.answered() for _ in range(4)]
    thread.join()
    assert [each.answers for each in found] == [[(100, 0)]] * 3 + [[(100, FINAL | EMPTY)]]
    assert [each.rows for each in found] == [[{"OUT": [0]}], [{"OUT": [1]}], [{"OUT": [2]}], [{}]]
    bench.answers.over(1, 2, False)
    assert wire.answered().answers == []


def test_only_the_first_final_answer_counts(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    first, second = batch.requests
    first.respond(response_of(1))
    first.respond(response_of(2))
    first.respond(response_of(3, final=False))
    second.respond(response_of(4))
    second.respond(response_of(5))
    bench.answers.over(1, 2, False)
    assert wire.answered().rows == [{"OUT": [1]}]
    assert wire.answered().rows == [{"OUT": [4]}]
    assert first.answered
    assert first.batch is None


def test_what_execute_raised_answers_what_is_left_also_of_what_joined(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    bench.answers.join(bench.execution(8, 200, 1))
    batch.requests[0].respond(response_of(1))
    wire.answered()
    bench.answers.fail(NotFound("no such voice"))
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert (found.numbers, found.extras["errors"]) == (
        [101, 200],
        {"0": [2, "no such voice"], "1": [2, "no such voice"]},
    )
    assert [number for number, _, _ in found.done] == [7, 8]


@pytest.mark.parametrize(
    ("error", "said"), [(ValueError("seven"), [1, "ValueError: seven"]), (KeyError(), [1, "KeyError"])]
)
def test_what_is_no_error_of_the_server_is_internal(
    wire: Wire, bench: Bench, error: Exception, said: list[object]
) -> None:
    bench.answers.begin(bench.execution(7, 100, 1))
    bench.answers.fail(error)
    bench.answers.over(1, 2, False)
    assert wire.answered().extras["errors"] == {"0": said}


def test_errors_and_parameters_belong_to_their_answers(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 3))
    batch.respond(
        [
            response_of(1, parameters={"tokens": 3}),
            InferResponse.failed(batch.requests[1], InvalidArgument("bad")),
            response_of(3),
        ]
    )
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert found.extras["errors"] == {"1": [3, "bad"]}
    assert found.extras["parameters"] == {"0": {"tokens": 3}}
    assert found.rows == [{"OUT": [1]}, {}, {"OUT": [3]}]


def test_a_batch_that_joins_where_nothing_runs_is_over_at_once(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.join(bench.execution(7, 100, 1))
    assert [number for number, _, _ in wire.answered().done] == [7]
    batch.respond([response_of(1)])
    assert wire.answered().numbers == [100]


def test_requests_that_are_handed_back_leave_with_the_end_of_their_execution(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    one, other = batch.requests
    one.reschedule()
    one.reschedule()
    assert wire.answered().extras["reschedule"] == [100]
    one.respond(response_of(1))
    other.reschedule()
    assert wire.is_silent()
    bench.answers.fail(ValueError("after it was handed back"))
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert (found.extras["reschedule"], found.answers) == ([101], [])
    assert not bench.opened


def test_new_states_go_once_with_the_first_final_answer_of_their_batch(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    batch.new_states["SUM"] = Tensor.from_numpy("SUM", np.array([[1], [2]], np.int32))
    batch.new_states["TEXT"] = Tensor.from_numpy("TEXT", np.array([b"a", b"bc"], np.object_))
    batch.requests[1].respond(response_of(5, final=False))
    assert "states" not in wire.answered().extras
    batch.requests[1].respond(response_of(5))
    found = wire.answered()
    assert found.extras["states"] == {"101": 1}
    assert found.rows == [{"OUT": [5]}, {"SUM": [[1], [2]], "TEXT": [b"a", b"bc"]}]
    batch.requests[0].respond(response_of(6))
    bench.answers.over(1, 2, False)
    assert "states" not in wire.answered().extras


def test_new_states_go_with_a_request_that_is_handed_back(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 1))
    batch.new_states["SUM"] = Tensor.from_numpy("SUM", np.array([[1]], np.int32))
    batch.requests[0].reschedule()
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert (found.extras["states"], found.extras["reschedule"], found.rows) == ({"100": 1}, [100], [{"SUM": [[1]]}])


class _Elsewhere:
    """Data on a device that numpy cannot read."""

    def __dlpack__(self, **_options: object) -> object:
        raise BufferError("the device is gone")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_outputs_that_cannot_be_had_from_their_device_are_an_error(
    wire: Wire, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 1))
    batch.respond([InferResponse([Tensor("OUT", "INT32", (1,), _Elsewhere(), (2, 0))], "caller", 1)])
    bench.answers.over(1, 2, False)
    assert wire.answered().extras["errors"] == {"0": [1, "BufferError: the device is gone"]}
    assert "the device is gone" in caplog.text


def test_where_there_is_no_memory_for_outputs_errors_go_in_their_place(
    wire: Wire, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_size: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tritonpy.ipc.memory_file.create", no_room)
    batch = bench.answers.begin(bench.execution(7, 100, 2))
    large = Tensor.from_numpy("OUT", np.zeros(1 << 20, np.int32))
    empty = InferResponse((), "caller", 1)
    batch.respond([InferResponse([large], "caller", 1), empty])
    bench.answers.over(1, 2, False)
    found = wire.answered()
    assert found.extras["errors"] == {"0": [1, "no memory for the outputs: [Errno 28] No space left on device"]}
    assert (found.numbers, found.rows, len(found.done)) == ([100, 101], [{}, {}], 1)


def test_an_error_keeps_its_class_by_its_code(wire: Wire, bench: Bench) -> None:
    batch = bench.answers.begin(bench.execution(7, 100, 1))
    batch.respond([InferResponse.failed(batch.requests[0], Internal("broken"))])
    bench.answers.over(1, 2, False)
    assert wire.answered().extras["errors"] == {"0": [1, "broken"]}


def test_answers_that_are_not_final_use_up_the_window_of_their_request(bench: Bench) -> None:
    execution = bench.execution(1, 0, 2)
    one, other = execution.batch.requests
    for _ in range(MAX_ANSWERS):
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


def test_the_window_of_a_request_that_is_handed_back_is_forgotten(bench: Bench) -> None:
    execution = bench.execution(1, 0, 1)
    (request,) = execution.batch.requests
    request.respond(response_of(1, final=False))
    assert bench.windows
    request.reschedule()
    assert not bench.windows
