from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, SequenceInfo
from tritonpy_frontend_grpc.parameters import parse_parameters, wants_empty_final
from tritonpy_protos.grpc_service_pb2 import InferParameter

ALLOWED = "triton_enable_empty_final_response"
RESERVED = f"Only the following keys starting with 'triton_' are allowed: {ALLOWED}"


def of(**given):
    return {key: InferParameter(**dict([value])) for key, value in given.items()}


def test_protocol_parameters_are_not_passed_to_the_model():
    found = parse_parameters(
        of(
            sequence_id=("int64_param", 5),
            sequence_start=("bool_param", True),
            priority=("uint64_param", 2),
            timeout=("int64_param", 1000),
            triton_enable_empty_final_response=("bool_param", True),
        )
    )
    assert found.custom == {}
    assert found.sequence == SequenceInfo(5, start=True)
    assert (found.priority, found.timeout_us) == (2, 1000)


values = st.one_of(
    st.tuples(st.just("int64_param"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("bool_param"), st.booleans()),
    st.tuples(st.just("string_param"), st.text()),
    st.tuples(st.just("double_param"), st.floats(allow_nan=False)),
)
MEANT = ("sequence_id", "sequence_start", "sequence_end", "priority", "timeout")
keys = st.text().filter(lambda key: not key.startswith("triton_") and key not in MEANT)


@given(st.dictionaries(keys, values))
def test_other_parameters_are_passed_to_the_model_with_their_types(given):
    found = parse_parameters(of(**given)).custom
    assert found == {key: value for key, (_, value) in given.items()}
    assert [type(value) for value in found.values()] == [type(value) for _, value in given.values()]


def test_a_sequence_id_may_be_a_string():
    found = parse_parameters(
        of(sequence_id=("string_param", "a"), sequence_end=("bool_param", True))
    )
    assert found.sequence == SequenceInfo("a", end=True)


def test_a_negative_sequence_id_is_the_unsigned_number_of_the_same_bits():
    assert parse_parameters(of(sequence_id=("int64_param", -1))).sequence == SequenceInfo(2**64 - 1)


@pytest.mark.parametrize("nothing", [("int64_param", 0), ("string_param", "")])
def test_an_empty_sequence_id_is_none(nothing):
    assert (
        parse_parameters(of(sequence_id=nothing, sequence_start=("bool_param", True))).sequence
        is None
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (of(sequence_id=("bool_param", True)), "invalid value type for 'sequence_id' parameter, expected int64_param or string_param."),
        (of(sequence_start=("int64_param", 1)), "invalid value type for 'sequence_start' parameter, expected bool_param."),
        (of(sequence_end=("int64_param", 1)), "invalid value type for 'sequence_end' parameter, expected bool_param."),
        (of(priority=("string_param", "1")), "invalid value type for 'priority' parameter, expected int64_param or uint64_param."),
        (of(priority=("int64_param", -1)), "invalid value for 'priority', expected value >= 0."),
        (of(timeout=("uint64_param", 1)), "invalid value type for 'timeout' parameter, expected int64_param."),
        (of(mine=("uint64_param", 1)), "invalid value type for 'mine' parameter, expected int64_param, bool_param, or string_param."),
        ({"mine": InferParameter()}, "invalid value type for 'mine' parameter, expected int64_param, bool_param, or string_param."),
        (of(triton_enable_empty_final_response=("int64_param", 1)), f"invalid value type for '{ALLOWED}' parameter, expected bool_param."),
        (of(triton_x=("int64_param", 1)), f"parameter keys starting with 'triton_' are reserved for Triton usage. {RESERVED}"),
    ],
)  # fmt: skip
def test_invalid_parameters_are_refused_with_tritons_texts(given, text):
    with pytest.raises(InvalidArgument) as refusal:
        parse_parameters(given)
    assert refusal.value.message == text


def test_an_empty_final_response_is_opt_in():
    assert not wants_empty_final({})
    assert not wants_empty_final(of(triton_enable_empty_final_response=("bool_param", False)))
    assert wants_empty_final(of(triton_enable_empty_final_response=("bool_param", True)))
