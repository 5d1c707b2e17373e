from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, SequenceInfo
from tritonpy_ensemble.sequences import parameters_of, sequence_of

BEFORE = SequenceInfo(5, start=True)


def test_an_answer_that_says_nothing_of_it_leaves_the_sequence_as_it_is():
    assert sequence_of({"other": 1}, BEFORE) is BEFORE
    assert sequence_of({}, None) is None


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"sequence_id": 7}, SequenceInfo(7)),
        ({"sequence_id": "text", "sequence_end": True}, SequenceInfo("text", end=True)),
        ({"sequence_id": -1}, SequenceInfo((1 << 64) - 1)),
        ({"sequence_end": True}, SequenceInfo(5, end=True)),
        ({"sequence_start": False}, SequenceInfo(5)),
    ],
)
def test_an_answer_that_says_something_replaces_both_flags(parameters, expected):
    assert sequence_of(parameters, BEFORE) == expected


def test_flags_outside_any_sequence_belong_to_number_0():
    assert sequence_of({"sequence_start": True}, None) == SequenceInfo(0, start=True)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"sequence_id": 1.5},
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
        ),
        (
            {"sequence_id": True},
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
        ),
        ({"sequence_start": 1}, "expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL"),
        ({"sequence_end": "yes"}, "expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL"),
    ],
)
def test_values_of_another_type_are_refused_in_triton_s_words(parameters, text):
    with pytest.raises(InvalidArgument) as refused:
        sequence_of(parameters, None)
    assert refused.value.message == text


def test_every_answer_tells_the_sequence():
    assert parameters_of(None) == {"sequence_id": 0, "sequence_start": False, "sequence_end": False}
    assert parameters_of(SequenceInfo("s", end=True)) == {
        "sequence_id": "s",
        "sequence_start": False,
        "sequence_end": True,
    }
