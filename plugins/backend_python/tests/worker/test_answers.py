from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

from tritonpy_worker.answers import EMPTY, FINAL, Answers, row_of
from tritonpy_worker.api.errors import TritonError, TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.tensor import Tensor


class Channel:
    """Remembers frames; `failing` is raised by the next one."""

    def __init__(self) -> None:
        self.sent: list[tuple[list[int], list[Any], dict[str, Any]]] = []
        self.failing: BaseException | None = None

    def send(self, kind: int, words: Any, rows: Any, wants: Any, extras: Any) -> None:
        if self.failing is not None:
            error, self.failing = self.failing, None
            raise error
        self.sent.append((list(words), list(rows), dict(extras)))


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def answers(channel: Channel) -> Answers:
    return Answers(channel, "m_0_0")


def response(**more: Any) -> InferenceResponse:
    return InferenceResponse([Tensor("OUT", np.zeros(2, np.float32))], **more)


def add(answers: Answers, request: int, said: InferenceResponse | None, flags: int = FINAL) -> None:
    answers.add(request, said, () if said is None else row_of(said), flags)


def test_neighbours_make_one_run(answers: Answers, channel: Channel) -> None:
    for request in (4, 5, 6, 8):
        add(answers, request, response())
    add(answers, 9, response(), 0)
    add(answers, 9, None, FINAL | EMPTY)
    answers.over(1, 100, 200)
    answers.send()
    ((words, rows, extras),) = channel.sent
    assert words == [1, 1, 100, 200, 4, 4, 3, FINAL, 8, 1, FINAL, 9, 1, 0, 9, 1, FINAL | EMPTY]
    assert [len(row) for row in rows] == [1, 1, 1, 1, 1, 0]
    assert extras == {}


def test_errors_and_parameters_are_told_by_the_index_of_the_answer(answers: Answers, channel: Channel) -> None:
    add(answers, 1, response())
    add(answers, 2, InferenceResponse(error=TritonError("bad", TritonError.NOT_FOUND)))
    add(answers, 3, response(parameters={"a": 1}))
    answers.reschedule(7)
    answers.send()
    assert channel.sent[0][2] == {"errors": {"1": [2, "bad"]}, "parameters": {"2": {"a": 1}}, "reschedule": [7]}


def test_nothing_is_no_frame(answers: Answers, channel: Channel) -> None:
    answers.send()
    assert channel.sent == []


def test_only_wanted_outputs_make_a_row() -> None:
    assert row_of(response(), ("OTHER",)) == []
    assert [each.name for each in row_of(response(), ("OTHER", "OUT"))] == ["OUT"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_where_memory_is_short_errors_go_instead_of_outputs(
    answers: Answers, channel: Channel, error: BaseException
) -> None:
    add(answers, 1, response())
    add(answers, 2, InferenceResponse(error=TritonError("its own")))
    add(answers, 3, None, FINAL | EMPTY)
    answers.over(1, 100, 200)
    channel.failing = error
    with pytest.raises(TritonModelException, match="there is no memory for the outputs"):
        answers.send()
    ((words, rows, extras),) = channel.sent
    assert words[:4] == [1, 1, 100, 200]
    assert rows == [()] * 3
    text = f"Failed to process the request(s) for model 'm_0_0', message: there is no memory for the outputs: {error}"
    assert extras["errors"] == {"0": [1, text], "1": [1, "its own"]}


def test_the_first_answer_does_not_wait_for_slow_ones(answers: Answers) -> None:
    assert not answers.due(10**9)
    answers.over(1, 0, 1_000)
    assert not answers.due(1_000 + 200_000)
    assert answers.due(1_001 + 200_000)


def test_only_the_thread_that_collects_hurries(answers: Answers, channel: Channel) -> None:
    answers.over(1, 0, 1_000)
    thread = Thread(target=answers.hurry)
    thread.start()
    thread.join()
    assert channel.sent == []
    answers.hurry()
    assert len(channel.sent) == 1
