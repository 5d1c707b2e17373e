from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_processes.responses_frame import (
    NumberedResponse,
    read_responses,
    write_responses,
)
from tritonpy_ipc import ProtocolError
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest, InferResponse, RegionSlice, Tensor
from tritonpy_types.errors import DecoupledRefused, QueueFull, ResourceExhausted, Unavailable

SINK = RecordingSink().sink
TEXTS = st.text(max_size=5)


def through(*responses: NumberedResponse) -> list[NumberedResponse]:
    frame = write_responses(responses)
    requests = {number: request for number, request, _, _ in responses}
    return list(
        read_responses(
            tuple(frame.words), json.loads(json.dumps(frame.extras)), frame.rows, requests.get
        )
    )


def request(number: int = 1) -> InferRequest:
    return InferRequest("m", {}, SINK, id=f"r{number}")


responses = st.builds(
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


@given(st.lists(st.tuples(responses, st.booleans()), max_size=4))
def test_all_fields_of_responses_arrive_in_order(
    expected: list[tuple[InferResponse, bool]],
) -> None:
    forwarded = [
        (number, request(number), response, traced)
        for number, (response, traced) in enumerate(expected)
    ]
    for before, after in zip(forwarded, through(*forwarded), strict=True):
        assert (after[0], after[1], after[3]) == (before[0], before[1], before[3])
        for field in ("model_name", "model_version", "id", "parameters", "error", "final", "empty"):
            assert getattr(after[2], field) == getattr(before[2], field), field


@pytest.mark.parametrize("kind", [QueueFull, DecoupledRefused, ResourceExhausted, Unavailable])
def test_errors_keep_class_text_and_retry_time(kind: type[Unavailable]) -> None:
    error = kind("no")
    error.retry_after_s = 7.5
    [(_, _, response, _)] = through((1, request(), InferResponse.failed(request(), error), False))
    assert type(response.error) is kind
    assert (response.error.message, response.error.retry_after) == ("no", "8")


def test_outputs_in_regions_keep_their_positions() -> None:
    there = Tensor("THERE", "FP32", (2,), RegionSlice("r", 0, 8))
    here = Tensor.from_numpy("HERE", np.arange(2))
    [(_, _, response, _)] = through(
        (1, request(), InferResponse([there, here], "m", 1, "r1"), False)
    )
    assert [output.name for output in response.outputs] == ["THERE", "HERE"]
    assert response.outputs[0].data == RegionSlice("r", 0, 8)


def test_responses_to_unknown_requests_are_skipped() -> None:
    frame = write_responses([(1, request(), InferResponse((), "m", 1, "r1"), False)])
    assert list(read_responses(tuple(frame.words), frame.extras, frame.rows, lambda _: None)) == []


@pytest.mark.parametrize(
    ("words", "rows"),
    [((2, 1, 1, 1), [[], []]), ((1, 1, 1, 1), []), ((1, 1, 1), [[]]), ((1, 1, 1, 1), [[], []])],
)
def test_malformed_frames_are_protocol_errors(
    words: tuple[int, ...], rows: list[list[Tensor]]
) -> None:
    with pytest.raises(ProtocolError):
        list(read_responses(words, {}, rows, lambda _: None))
