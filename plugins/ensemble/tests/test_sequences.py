from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, SequenceInfo
from tritonpy_ensemble.sequences import next_sequence, sequence_parameters

BEFORE = SequenceInfo(5, start=True)


def test_a_response_without_sequence_parameters_keeps_the_sequence():
    assert next_sequence({"other": 1}, BEFORE) is BEFORE
    assert next_sequence({}, None) is None


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
def test_a_response_with_a_sequence_parameter_replaces_both_flags(parameters, expected):
    assert next_sequence(parameters, BEFORE) == expected


def test_flags_without_a_sequence_use_id_0():
    assert next_sequence({"sequence_start": True}, None) == SequenceInfo(0, start=True)


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
        (
            {"sequence_start": 1},
            "expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL",
        ),
        (
            {"sequence_end": "yes"},
            "expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL",
        ),
    ],
)
def test_values_of_a_wrong_type_are_rejected_with_triton_s_text(parameters, text):
    with pytest.raises(InvalidArgument) as refused:
        next_sequence(parameters, None)
    assert refused.value.message == text


def test_every_response_has_sequence_parameters():
    assert sequence_parameters(None) == {
        "sequence_id": 0,
        "sequence_start": False,
        "sequence_end": False,
    }
    assert sequence_parameters(SequenceInfo("s", end=True)) == {
        "sequence_id": "s",
        "sequence_start": False,
        "sequence_end": True,
    }
