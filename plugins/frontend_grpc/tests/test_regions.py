from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, RegionSlice
from tritonpy_frontend_grpc.regions import parse_region
from tritonpy_protos.grpc_service_pb2 import InferParameter

NAME = InferParameter(string_param="r")
NUMBER = InferParameter(int64_param=8)


def test_a_region_needs_a_name_and_a_size():
    assert parse_region({}, "X") is None
    assert parse_region({"shared_memory_region": NAME, "shared_memory_byte_size": NUMBER}, "X") == RegionSlice(
        "r", 0, 8
    )


def test_an_offset_is_optional():
    given = {"shared_memory_region": NAME, "shared_memory_byte_size": NUMBER, "shared_memory_offset": NUMBER}
    assert parse_region(given, "X") == RegionSlice("r", 8, 8)


def test_negative_values_are_interpreted_as_unsigned():
    negative = InferParameter(int64_param=-1)
    given = {"shared_memory_region": NAME, "shared_memory_byte_size": negative, "shared_memory_offset": negative}
    assert parse_region(given, "X") == RegionSlice("r", 2**64 - 1, 2**64 - 1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"shared_memory_region": NUMBER}, "invalid value type for 'shared_memory_region' parameter for tensor 'X', expected string_param."),
        ({"shared_memory_region": NAME}, "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'X'"),
        ({"shared_memory_region": NAME, "shared_memory_byte_size": NAME}, "invalid value type for 'shared_memory_byte_size' parameter for tensor 'X', expected int64_param."),
        ({"shared_memory_region": NAME, "shared_memory_offset": NAME}, "invalid value type for 'shared_memory_offset' parameter for tensor 'X', expected int64_param."),
        ({"shared_memory_offset": NUMBER}, "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'X'"),
        ({"shared_memory_byte_size": NUMBER}, "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'X'"),
    ],
)  # fmt: skip
def test_incomplete_region_parameters_have_tritons_error_texts(given, text):
    with pytest.raises(InvalidArgument) as refusal:
        parse_region(given, "X")
    assert refusal.value.message == text
