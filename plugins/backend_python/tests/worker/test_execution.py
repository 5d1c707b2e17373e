from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE as RESCHEDULE,
)
from tritonpy_worker.api.constants import TRITONSERVER_RESPONSE_COMPLETE_FINAL as FINAL
from tritonpy_worker.api.errors import TritonError, TritonModelException
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.tensor import Tensor
from tritonpy_worker.coroutines import Coroutines
from tritonpy_worker.execution import Executor, WorkerSink
from tritonpy_worker.memory import Reserve

FAILED = "Failed to process the request(s) for model 'm_0_0', message: "


class Host:
    """A host for senders."""

    def __init__(self, decoupled: bool) -> None:
        self.decoupled = decoupled
        self.sent: list[tuple[int, Any, bool]] = []
        self.dropped: list[int] = []

    def send(self, request: int, response: Any, final: bool) -> None:
        self.sent.append((request, response, final))

    def abandon(self, request: int) -> None:
        self.dropped.append(request)


class Recorder(WorkerSink):
    def __init__(self) -> None:
        self.answered: dict[int, InferenceResponse] = {}
        self.failed: dict[int, str] = {}
        self.rescheduled: list[int] = []
        self.left: list[int] = []
        self.logged: list[str] = []
        self.broken: Exception | None = None

    def respond(self, requests: Sequence[Any], responses: Sequence[Any]) -> None:
        if self.broken is not None:
            raise self.broken
        self.answered |= {
            one.number: each
            for one, each in zip(requests, responses, strict=True)
            if each is not None
        }

    def fail(self, requests: Sequence[Any], text: str) -> None:
        self.failed |= {request.number: text for request in requests}

    def reschedule(self, request: Any) -> None:
        self.rescheduled.append(request.number)

    def respond_later(self, request: Any) -> None:
        self.left.append(request.number)

    def log(self, level: str, message: str) -> None:
        assert level == "ERROR"
        self.logged.append(message)


class Run:
    """An execution of two requests by `execute(requests)`."""

    def __init__(
        self, execute: Any, decoupled: bool = False, count: int = 2, broken: Exception | None = None
    ) -> None:
        self.host = Host(decoupled)
        self.sink = Recorder()
        self.sink.broken = broken
        self.requests = [
            InferenceRequest.received(self.host, number, "", 0, (), ("OUT",), {}, 0, 0)
            for number in range(count)
        ]
        model = SimpleNamespace() if execute is None else SimpleNamespace(execute=execute)
        self.coroutines = Coroutines()
        executor = Executor(
            model, "/m/1/model.py", "m_0_0", decoupled, self.sink, self.coroutines, Reserve()
        )
        executor.run(list(self.requests))
        self.coroutines.stop()


def response(*values: float) -> InferenceResponse:
    return InferenceResponse([Tensor("OUT", np.array(values, np.float32))])


def test_each_response_is_sent_to_its_request() -> None:
    first, second = response(1), response(2)
    run = Run(lambda _: [first, second])
    assert run.sink.answered == {0: first, 1: second}
    assert not run.sink.failed
    assert not run.sink.left


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ((1, 2), "Expected a list in the execute return, found type '<class 'tuple'>'."),
        (3, "Expected a list in the execute return, found type '<class 'int'>'."),
        (
            [1],
            (
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:2, and InferenceResponse(s) size is:1\n"
            ),
        ),
        (
            [response(1), "x"],
            "Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'str'>'.",
        ),
    ],
)
def test_a_wrong_return_fails_every_request_of_the_batch(returned: Any, text: str) -> None:
    run = Run(lambda _: returned)
    assert run.sink.failed == {0: FAILED + text, 1: FAILED + text}
    assert run.sink.logged == [FAILED + text]
    assert not run.sink.answered


def test_a_subclass_of_the_response_is_a_response() -> None:
    class Own(InferenceResponse):
        pass

    own = Own([])
    assert Run(lambda _: [own, own]).sink.answered == {0: own, 1: own}


def test_a_model_without_execute_is_an_error() -> None:
    text = FAILED + "Python model /m/1/model.py does not implement `execute` method."
    assert Run(None).sink.failed == {0: text, 1: text}


def fails(error: BaseException) -> Any:
    def execute(_: Any) -> None:
        raise error

    return execute


@pytest.mark.parametrize(
    ("error", "beginning"),
    [
        (ValueError("no"), "ValueError: no\n\nAt:\n"),
        (SystemExit(3), "SystemExit: 3\n\nAt:\n"),
        (KeyboardInterrupt(), "KeyboardInterrupt: <EMPTY MESSAGE>\n\nAt:\n"),
        (MemoryError(), "MemoryError: <EMPTY MESSAGE>\n\nAt:\n"),
        (TritonModelException("own"), "TritonModelException: own\n\nAt:\n"),
    ],
)
def test_any_exception_of_execute_fails_the_batch(error: BaseException, beginning: str) -> None:
    run = Run(fails(error))
    assert set(run.sink.failed) == {0, 1}
    assert run.sink.failed[0].startswith(FAILED + beginning)
    assert "test_execution.py" in run.sink.failed[0]


def test_the_model_may_empty_the_list_of_requests() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests.clear()
        return [response(1), response(2)]

    assert set(Run(execute).sink.answered) == {0, 1}


def test_requests_without_a_response_may_have_one_later() -> None:
    run = Run(lambda _: [response(1), None])
    assert set(run.sink.answered) == {0}
    assert run.sink.left == [1]


def test_a_return_value_of_none_allows_later_responses() -> None:
    assert Run(lambda _: None).sink.left == [0, 1]


def test_a_request_finished_by_its_sender_gets_no_second_response() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[0].get_response_sender().send(response(1), FINAL)
        return [None, response(2)]

    run = Run(execute)
    assert [(request, final) for request, _, final in run.host.sent] == [(0, True)]
    assert set(run.sink.answered) == {1}
    assert not run.sink.left


def test_a_second_response_fails_the_rest_of_the_batch() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[1].get_response_sender().send(response(1), FINAL)
        return [response(1), response(2)]

    run = Run(execute)
    text = "Unable to send response. Non-decoupled model cannot send more than one response."
    assert run.sink.failed == {0: FAILED + text}


def test_returned_responses_of_a_failed_batch_are_not_sent() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[0].get_response_sender()
        return [response(1), "wrong"]

    assert set(Run(execute).sink.failed) == {0, 1}


def test_an_unreadable_output_fails_the_batch() -> None:
    run = Run(
        lambda _: [response(1), response(2)], broken=TritonModelException("the device is gone")
    )
    assert set(run.sink.failed) == {0, 1}
    assert "the device is gone" in run.sink.failed[0]


def test_the_sender_of_a_failed_request_is_closed() -> None:
    run = Run(fails(ValueError("no")))
    with pytest.raises(TritonModelException, match="Response sender has been closed"):
        run.requests[0].get_response_sender().send(response(1))


def test_rescheduled_requests_return_to_the_scheduler() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[1].set_release_flags(RESCHEDULE)
        return [response(1), None]

    run = Run(execute)
    assert run.sink.rescheduled == [1]
    assert set(run.sink.answered) == {0}
    assert not run.sink.left
    run.requests.clear()
    assert run.host.dropped == []


def test_a_rescheduled_request_has_no_response() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[0].set_release_flags(RESCHEDULE)
        return [response(1), response(2)]

    run = Run(execute)
    assert set(run.sink.failed) == {0, 1}
    assert run.sink.failed[0].startswith(
        FAILED
        + "Expected a None object in the execute function return list for reschduled request, found type '<class '"
    )


def test_requests_of_a_failed_batch_are_not_rescheduled() -> None:
    def execute(requests: list[Any]) -> list[Any]:
        requests[0].set_release_flags(RESCHEDULE)
        raise ValueError("no")

    run = Run(execute)
    assert run.sink.rescheduled == []
    assert set(run.sink.failed) == {0, 1}


def test_a_decoupled_model_must_return_none() -> None:
    run = Run(lambda _: [], decoupled=True)
    text = "Python model 'm_0_0' is using the decoupled mode and the execute function must return None."
    assert run.sink.failed == {0: FAILED + text, 1: FAILED + text}


def test_a_decoupled_request_without_final_response_stays_open() -> None:
    def execute(requests: list[Any]) -> None:
        for request in requests:
            request.get_response_sender().send(response(1))
        requests[0].get_response_sender().send(flags=FINAL)

    run = Run(execute, decoupled=True)
    assert [(request, final) for request, _, final in run.host.sent] == [
        (0, False),
        (1, False),
        (0, True),
    ]
    assert run.sink.left == [1]


def test_a_rescheduled_decoupled_request_may_have_responses() -> None:
    def execute(requests: list[Any]) -> None:
        requests[0].get_response_sender().send(response(1))
        requests[0].set_release_flags(RESCHEDULE)

    run = Run(execute, decoupled=True, count=1)
    assert run.sink.rescheduled == [0]
    assert not run.sink.left


def test_a_coroutine_is_awaited() -> None:
    async def execute(_: Any) -> list[Any]:
        return [response(1), response(2)]

    assert set(Run(execute).sink.answered) == {0, 1}


def test_a_coroutine_that_raises_fails_the_batch() -> None:
    async def execute(_: Any) -> list[Any]:
        raise ValueError("in a coroutine")

    text = Run(execute).sink.failed[0]
    assert text.startswith(FAILED + "ValueError: in a coroutine\n\nAt:\n")
    assert text.count("(") - FAILED.count("(") == 1


def test_an_error_object_is_a_response() -> None:
    error = InferenceResponse(error=TritonError("bad", TritonError.INVALID_ARG))
    assert Run(lambda _: [error, error]).sink.answered == {0: error, 1: error}
