from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.api.authenticator import Principal
from tritonpy_frontend_processes import kinds
from tritonpy_frontend_processes.model_ids import ModelIdDecoder, ModelIdEncoder
from tritonpy_frontend_processes.requests_frame import (
    ReadRequests,
    TraceMessage,
    read_requests,
    write_requests,
)
from tritonpy_ipc import Endpoint, ProtocolError
from tritonpy_ipc.blocks import BlockInputs
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import DTYPES, InferRequest, OutputSpec, RegionSlice, SequenceInfo, Tensor

SINK = RecordingSink().sink
TEXTS = st.text(max_size=5)
NUMBERS = st.integers(0, 2**64 - 1)


def through(*requests: InferRequest, message: TraceMessage | None = None) -> list[ReadRequests]:
    numbered = list(enumerate(requests, 7))
    frame = write_requests(
        numbered, ModelIdEncoder(), lambda _number, _request: message or TraceMessage({}, [])
    )
    extras = json.loads(json.dumps(frame.extras))
    return read_requests(
        tuple(frame.words), extras, frame.rows, frame.requested, ModelIdDecoder(), SINK
    )


def through_blocks(*requests: InferRequest) -> list[ReadRequests]:
    """Return requests after a transfer between two ends, with inputs in their blocks."""
    here, there = Endpoint(DTYPES), Endpoint(DTYPES)
    frame = write_requests(list(enumerate(requests, 7)), ModelIdEncoder(), _no_trace)
    data, _ = here.compose(kinds.INFER, *frame)
    (arrived,) = there.feed(data)
    rows, requested = there.rows(arrived, arrived.words[1], Tensor, BlockInputs)
    return read_requests(arrived.words, arrived.extras, rows, requested, ModelIdDecoder(), SINK)


def add_one(number: int, size: int = 3, **fields: Any) -> InferRequest:
    return request_with(inputs={"A": Tensor.from_numpy("A", np.full(size, number))}, **fields)


def request_with(**fields: Any) -> InferRequest:
    return InferRequest(fields.pop("model_name", "m"), fields.pop("inputs", {}), SINK, **fields)


sequences = st.none() | st.builds(
    SequenceInfo, st.integers(1, 2**64 - 1) | st.text(min_size=1), st.booleans(), st.booleans()
)
plain = st.builds(OutputSpec, TEXTS)
special = st.builds(OutputSpec, TEXTS, st.integers(1, 3)) | st.builds(
    OutputSpec,
    TEXTS,
    st.just(0),
    st.text(min_size=1, max_size=5),
    st.integers(0, 9),
    st.integers(0, 9),
)


def by_name(specs: list[OutputSpec]) -> dict[str, OutputSpec]:
    return {spec.name: spec for spec in specs}


requests = st.builds(
    request_with,
    model_name=TEXTS,
    model_version=st.integers(-1, 9),
    id=TEXTS,
    outputs=st.none() | st.lists(plain, max_size=3).map(by_name),
    parameters=st.dictionaries(
        TEXTS, st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS
    ),
    priority=NUMBERS,
    timeout_us=NUMBERS,
    deadline_ns=NUMBERS,
    received_ns=NUMBERS,
    sequence=sequences,
    accepts_decoupled=st.booleans(),
    classifies=st.booleans(),
    uses_regions=st.booleans(),
    principal=st.none() | st.builds(Principal, TEXTS, st.none(), TEXTS),
    headers=st.none() | st.dictionaries(TEXTS, TEXTS, min_size=1),
)
special_requests = st.builds(
    request_with,
    outputs=st.lists(plain | special, max_size=3).map(by_name),
    classifies=st.just(True),
    uses_regions=st.just(True),
)
FIELDS = (
    "model_name", "model_version", "id", "outputs", "parameters", "priority", "timeout_us", "deadline_ns", "received_ns",
    "sequence", "accepts_decoupled", "classifies", "uses_regions", "principal", "headers",
)  # fmt: skip


@given(st.lists(requests | special_requests, max_size=4))
def test_all_fields_of_requests_arrive_in_order(given_requests: list[InferRequest]) -> None:
    for number, (forwarded, read) in enumerate(
        zip(given_requests, through(*given_requests), strict=True), 7
    ):
        (arrived,) = read[1]
        assert read[0] == number
        assert arrived.sink is SINK
        for field in FIELDS:
            assert getattr(arrived, field) == getattr(forwarded, field), field
            assert type(getattr(arrived, field)) is type(getattr(forwarded, field)), field


def test_inputs_in_regions_keep_their_positions() -> None:
    inputs = {
        "A": Tensor("A", "FP32", (1,), RegionSlice("r", 0, 4)),
        "B": Tensor.from_numpy("B", np.arange(3)),
        "C": Tensor("C", "INT32", (-1,), np.frombuffer(b"1234", np.uint8)),
    }
    [(_, [request], _)] = through(request_with(inputs=inputs, uses_regions=True))
    assert list(request.inputs) == ["A", "B", "C"]
    assert request.inputs["A"].data == RegionSlice("r", 0, 4)
    assert request.inputs["C"].shape == (-1,)


def test_a_plain_request_has_no_json() -> None:
    model_ids = ModelIdEncoder()
    plain = request_with(
        inputs={"A": Tensor.from_numpy("A", np.arange(3))}, sequence=SequenceInfo(5, start=True)
    )
    write_requests([(1, plain)], model_ids, _no_trace)
    model_ids.announced()
    assert write_requests([(2, plain)], model_ids, _no_trace).extras == {}


def test_trace_data_arrives() -> None:
    message = TraceMessage({"traceparent": "x"}, [("HTTP_RECV_START", 5)])
    assert [
        trace
        for _, _, trace in through(request_with(trace=object()), request_with(), message=message)
    ] == [
        message,
        None,
    ]


def test_consecutive_requests_with_identical_headers_arrive_together() -> None:
    [(number, requests, trace)] = through_blocks(
        add_one(1, id="a", received_ns=5),
        add_one(2, id="b", received_ns=6, deadline_ns=9),
        add_one(3, id="c"),
    )
    assert (number, trace) == (7, None)
    assert [int(request.inputs["A"].data[0]) for request in requests] == [1, 2, 3]
    assert [(request.id, request.received_ns, request.deadline_ns) for request in requests] == [
        ("a", 5, 0), ("b", 6, 9), ("c", 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        lambda: add_one(2, 4),
        lambda: add_one(2, model_name="n"),
        lambda: add_one(2, model_version=3),
        lambda: add_one(2, outputs={"O": OutputSpec("O")}),
        lambda: add_one(2, priority=1),
        lambda: add_one(2, timeout_us=1),
        lambda: add_one(2, parameters={"a": 1}),
        lambda: add_one(2, sequence=SequenceInfo(4)),
        lambda: add_one(2, accepts_decoupled=True),
        lambda: add_one(2, principal=Principal("p")),
        lambda: add_one(2, headers={"a": "b"}),
    ],
)
def test_requests_with_other_differences_arrive_alone(other: Callable[[], InferRequest]) -> None:
    read = through_blocks(add_one(1), other(), add_one(3), add_one(4))
    assert [(number, len(requests)) for number, requests, _ in read] == [(7, 1), (8, 1), (9, 2)]
    values = [int(request.inputs["A"].data[0]) for _, requests, _ in read for request in requests]
    assert values == [1, 2, 3, 4]


def test_strings_of_different_sizes_arrive_one_by_one() -> None:
    texts = [
        request_with(inputs={"A": Tensor.from_numpy("A", np.array([b"x" * size]))})
        for size in (1, 1)
    ]
    assert [len(requests) for _, requests, _ in through_blocks(*texts)] == [1, 1]


@pytest.mark.parametrize(
    ("words", "extras", "rows"),
    [
        ((2,), {}, [[]]),
        ((1, 2, 3), {}, [[]]),
        ((1, 9, 1, 1, 9, 0, 0, 0, 0), {}, [[]]),
        ((1, 9, 1, 1, 0, 64, 0, 0, 0), {"model_ids": [[0, "m", 1]], "optional": {"4": {}}}, [[]]),
        (
            (1, 9, 1, 1, 0, 64, 0, 0, 0),
            {"model_ids": [[0, "m", 1]], "optional": {"0": {"priority": "x"}}},
            [[]],
        ),
        ((1, 9, 1, 1, 0, 0, 0, 0), {"model_ids": [[0, "m", 1]]}, [[]]),
        ((1, 9, 0, 1, 0, 0, 0, 0, 0), {"model_ids": [[0, "m", 1]]}, [[]]),
        ((1, 9, 2, 1, 0, 0, 0, 0, 0, 0, 0), {"model_ids": [[0, "m", 1]]}, [[]]),
        ((2, 11, 2, 1, 0, 1, 0, 0, 0, 0, 0), {"model_ids": [[0, "m", 1]]}, [[], []]),
        ((1, 9, 1, 1, 0, 0, 0, 0, 0), {"model_ids": [[0, "m", 1]], "ids": []}, [[]]),
    ],
)
def test_malformed_frames_are_protocol_errors(
    words: tuple[int, ...], extras: dict[str, Any], rows: list[Any]
) -> None:
    with pytest.raises(ProtocolError):
        read_requests(words, extras, rows, [None] * len(rows), ModelIdDecoder(), SINK)


def _no_trace(_number: int, _request: InferRequest) -> TraceMessage:
    raise AssertionError("nothing is traced")
