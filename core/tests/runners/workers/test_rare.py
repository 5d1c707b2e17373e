"""What is rare about requests."""

from __future__ import annotations

import pytest

from tritonpy.runners.workers.rare import is_plain, request_extras
from tritonpy.types import CallbackSink, InferRequest, SequenceInfo


def request(**said):
    return InferRequest("m", {}, CallbackSink(lambda *_: None), **said)


def test_a_request_with_nothing_but_tensors_is_plain() -> None:
    assert is_plain(request())
    assert request_extras([request(), request()]) == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"parameters": {"a": 1}}, {"parameters": {"a": 1}}),
        ({"timeout_us": 5}, {"timeout_us": 5}),
        ({"priority": 2}, {"priority": 2}),
        ({"deadline_ns": 9}, {"deadline_ns": 9}),
        ({"batch_size": 3}, {"batch_size": 3}),
        ({"trace": "context"}, {"trace": "context"}),
    ],
)
def test_whatever_else_it_has_is_told_under_its_index(said, told) -> None:
    assert not is_plain(request(**said))
    assert request_extras([request(), request(**said)]) == {"requests": {"1": told}}


def test_unchecked_strings_are_a_list_of_the_frame() -> None:
    requests = [request(), request(unchecked_strings=True)]
    assert not is_plain(requests[1])
    assert request_extras(requests) == {"unchecked": [1]}


@pytest.mark.parametrize("said", [{"id": "a"}, {"sequence": SequenceInfo(7, start=True)}])
def test_an_id_and_a_sequence_are_said_elsewhere(said) -> None:
    assert is_plain(request(**said))
    assert request_extras([request(**said)]) == {}
