"""Optional fields of requests."""

from __future__ import annotations

import pytest

from tritonpy_types import CallbackSink, InferRequest, SequenceInfo
from tritonpy_workers.request_extras import is_plain, request_extras


def request(**message):
    return InferRequest("m", {}, CallbackSink(lambda *_: None), **message)


def test_a_request_with_nothing_but_tensors_is_plain() -> None:
    assert is_plain(request())
    assert request_extras([request(), request()]) == {}


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ({"parameters": {"a": 1}}, {"parameters": {"a": 1}}),
        ({"timeout_us": 5}, {"timeout_us": 5}),
        ({"priority": 2}, {"priority": 2}),
        ({"deadline_ns": 9}, {"deadline_ns": 9}),
        ({"batch_size": 3}, {"batch_size": 3}),
        ({"trace": "context"}, {"trace": "context"}),
    ],
)
def test_optional_fields_are_sent_by_index(message, reported) -> None:
    assert not is_plain(request(**message))
    assert request_extras([request(), request(**message)]) == {"requests": {"1": reported}}


def test_unchecked_strings_are_a_list_of_the_frame() -> None:
    requests = [request(), request(unchecked_strings=True)]
    assert not is_plain(requests[1])
    assert request_extras(requests) == {"unchecked": [1]}


@pytest.mark.parametrize("message", [{"id": "a"}, {"sequence": SequenceInfo(7, start=True)}])
def test_ids_and_sequences_are_not_optional_fields(message) -> None:
    assert is_plain(request(**message))
    assert request_extras([request(**message)]) == {}
