from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.errors import DecoupledRefused, QueueFull, ResourceExhausted, Unavailable
from tritonpy.frontend_processes.answers_frame import Given, read_answers, write_answers
from tritonpy.ipc import ProtocolError
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, InferResponse, RegionSlice, Tensor

SINK = Witness().sink
TEXTS = st.text(max_size=5)


def through(*answers: Given) -> list[Given]:
    frame = write_answers(answers)
    requests = {number: request for number, request, _, _ in answers}
    return list(read_answers(tuple(frame.words), json.loads(json.dumps(frame.extras)), frame.rows, requests.get))


def request(number: int = 1) -> InferRequest:
    return InferRequest("m", {}, SINK, id=f"r{number}")


answers = st.builds(
    InferResponse,
    st.just(()),
    TEXTS,
    st.integers(-1, 2**63 - 1),
    TEXTS,
    st.dictionaries(TEXTS, st.booleans() | st.integers() | TEXTS),
    st.none(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(st.tuples(answers, st.booleans()), max_size=4))
def test_everything_that_answers_say_arrives_in_their_order(said: list[tuple[InferResponse, bool]]) -> None:
    sent = [(number, request(number), response, traced) for number, (response, traced) in enumerate(said)]
    for before, after in zip(sent, through(*sent), strict=True):
        assert (after[0], after[1], after[3]) == (before[0], before[1], before[3])
        for field in ("model_name", "model_version", "id", "parameters", "error", "final", "empty"):
            assert getattr(after[2], field) == getattr(before[2], field), field


@pytest.mark.parametrize("kind", [QueueFull, DecoupledRefused, ResourceExhausted, Unavailable])
def test_errors_keep_class_text_and_when_to_come_again(kind: type[Unavailable]) -> None:
    error = kind("no")
    error.retry_after_s = 7.5
    [(_, _, response, _)] = through((1, request(), InferResponse.failed(request(), error), False))
    assert type(response.error) is kind
    assert (response.error.message, response.error.retry_after) == ("no", "8")


def test_outputs_arrive_with_those_in_regions_in_their_places() -> None:
    there = Tensor("THERE", "FP32", (2,), RegionSlice("r", 0, 8))
    here = Tensor.from_numpy("HERE", np.arange(2))
    [(_, _, response, _)] = through((1, request(), InferResponse([there, here], "m", 1, "r1"), False))
    assert [output.name for output in response.outputs] == ["THERE", "HERE"]
    assert response.outputs[0].data == RegionSlice("r", 0, 8)


def test_answers_to_nobody_are_left_out() -> None:
    frame = write_answers([(1, request(), InferResponse((), "m", 1, "r1"), False)])
    assert list(read_answers(tuple(frame.words), frame.extras, frame.rows, lambda _: None)) == []


@pytest.mark.parametrize(
    ("words", "rows"), [((2, 1, 1, 1), [[], []]), ((1, 1, 1, 1), []), ((1, 1, 1), [[]]), ((1, 1, 1, 1), [[], []])]
)
def test_nonsense_is_a_broken_protocol(words: tuple[int, ...], rows: list[list[Tensor]]) -> None:
    with pytest.raises(ProtocolError):
        list(read_answers(words, {}, rows, lambda _: None))
