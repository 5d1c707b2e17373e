from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonError, TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.tensor import Tensor
from tritonpy_worker.response_frame import EMPTY, FINAL, ResponseFrame, output_row


class Channel:
    """Records frames. The next one raises `failing` if set."""

    def __init__(self) -> None:
        self.sent: list[tuple[list[int], list[Any], dict[str, Any]]] = []
        self.failing: BaseException | None = None

    def send(self, kind: int, words: Any, rows: Any, requested: Any, extras: Any) -> None:
        if self.failing is not None:
            error, self.failing = self.failing, None
            raise error
        self.sent.append((list(words), list(rows), dict(extras)))


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def answers(channel: Channel) -> ResponseFrame:
    return ResponseFrame(channel, "m_0_0")


def response(**more: Any) -> InferenceResponse:
    return InferenceResponse([Tensor("OUT", np.zeros(2, np.float32))], **more)


def add(
    answers: ResponseFrame, request: int, response: InferenceResponse | None, flags: int = FINAL
) -> None:
    answers.add(request, response, () if response is None else output_row(response), flags)


def test_consecutive_requests_form_one_run(answers: ResponseFrame, channel: Channel) -> None:
    for request in (4, 5, 6, 8):
        add(answers, request, response())
    add(answers, 9, response(), 0)
    add(answers, 9, None, FINAL | EMPTY)
    answers.add_execution(1, 100, 200)
    answers.send()
    ((words, rows, extras),) = channel.sent
    assert words == [1, 1, 100, 200, 4, 4, 3, FINAL, 8, 1, FINAL, 9, 1, 0, 9, 1, FINAL | EMPTY]
    assert [len(row) for row in rows] == [1, 1, 1, 1, 1, 0]
    assert extras == {}


def test_errors_and_parameters_are_sent_by_index(answers: ResponseFrame, channel: Channel) -> None:
    add(answers, 1, response())
    add(answers, 2, InferenceResponse(error=TritonError("bad", TritonError.NOT_FOUND)))
    add(answers, 3, response(parameters={"a": 1}))
    answers.reschedule(7)
    answers.send()
    assert channel.sent[0][2] == {
        "errors": {"1": [2, "bad"]},
        "parameters": {"2": {"a": 1}},
        "reschedule": [7],
    }


def test_an_empty_frame_is_not_sent(answers: ResponseFrame, channel: Channel) -> None:
    answers.send()
    assert channel.sent == []


def test_a_row_has_requested_outputs_only() -> None:
    assert output_row(response(), ("OTHER",)) == []
    assert [each.name for each in output_row(response(), ("OTHER", "OUT"))] == ["OUT"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_without_memory_errors_are_sent_instead_of_outputs(
    answers: ResponseFrame, channel: Channel, error: BaseException
) -> None:
    add(answers, 1, response())
    add(answers, 2, InferenceResponse(error=TritonError("its own")))
    add(answers, 3, None, FINAL | EMPTY)
    answers.add_execution(1, 100, 200)
    channel.failing = error
    with pytest.raises(TritonModelException, match="there is no memory for the outputs"):
        answers.send()
    ((words, rows, extras),) = channel.sent
    assert words[:4] == [1, 1, 100, 200]
    assert rows == [()] * 3
    text = f"Failed to process the request(s) for model 'm_0_0', message: there is no memory for the outputs: {error}"
    assert extras["errors"] == {"0": [1, text], "1": [1, "its own"]}


def test_the_first_response_does_not_wait_for_slow_executions(answers: ResponseFrame) -> None:
    assert not answers.is_due(10**9)
    answers.add_execution(1, 0, 1_000)
    assert not answers.is_due(1_000 + 200_000)
    assert answers.is_due(1_001 + 200_000)


def test_only_the_collecting_thread_sends_early(answers: ResponseFrame, channel: Channel) -> None:
    answers.add_execution(1, 0, 1_000)
    thread = Thread(target=answers.send_early)
    thread.start()
    thread.join()
    assert channel.sent == []
    answers.send_early()
    assert len(channel.sent) == 1
