from __future__ import annotations

import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy.config import read_config_text
from tritonpy_backend_kit.config_check import (
    check_batch_dimension,
    check_input_count,
    check_scalar,
    configured_datatype,
    datatype_mismatch,
    dims_match,
    find_tensor,
    input_count,
    missing_control,
)

FP32, INVALID = 11, 0


def config(text=""):
    return read_config_text(f'name: "m" {text}').checked("config.pbtxt")


def test_an_unknown_tensor_is_named_with_the_allowed_ones():
    assert find_tensor({"A": 1}, "A", "input") == 1
    with pytest.raises(InvalidArgument, match=r"input 'X', allowed inputs are: A, B$"):
        find_tensor({"B": 1, "A": 2}, "X", "input")
    with pytest.raises(InvalidArgument, match=r"output 'X', allowed outputs are: C$"):
        find_tensor({"A": 1}, "X", "output", ["C"])


def test_inputs_of_the_server_are_counted():
    text = """
    input { name: "A" } input { name: "B" }
    batch_input { target_name: ["C", "D"] }
    sequence_batching { state { input_name: "S" output_name: "T" } }
    """
    assert input_count(config(text), controls=1) == 6
    assert input_count(config(text), controls=0, fields=1) == 4
    check_input_count(config(), 2, 2)
    with pytest.raises(InvalidArgument, match="expects 2 inputs, model provides 3"):
        check_input_count(config(), 2, 3)


def test_datatypes_are_named_as_in_the_configuration():
    found = configured_datatype(config(), "input 'IN'", FP32)
    error = datatype_mismatch(config(), "input 'IN'", found, "INT8")
    assert "expects datatype TYPE_FP32 for input 'IN', model provides TYPE_INT8" in error.message
    with pytest.raises(Internal, match="unsupported datatype TYPE_INVALID for input 'IN'"):
        configured_datatype(config(), "input 'IN'", INVALID)


@pytest.mark.parametrize("dims", [(), (1, 4)])
def test_batches_need_a_dynamic_first_dimension(dims):
    check_batch_dimension(config(), "IN", dims)
    check_batch_dimension(config("max_batch_size: 2"), "IN", (-1, 4))
    with pytest.raises(InvalidArgument, match="first dimension must be -1"):
        check_batch_dimension(config("max_batch_size: 2"), "IN", dims)


def test_a_scalar_has_one_element():
    check_scalar(config(), "IN", (1, 1))
    with pytest.raises(InvalidArgument, match=r"configuration provided: \[2\]"):
        check_scalar(config(), "IN", (2,))


@pytest.mark.parametrize(
    ("model", "configured", "exact", "fits"),
    [
        ((-1, 4), (-1, 4), True, True),
        ((-1, 4), (3, 4), False, True),
        ((-1, 4), (3, 4), True, False),
        ((2, 4), (-1, 4), False, False),
        ((4,), (4, 1), False, False),
    ],
)
def test_fixed_dimensions_are_equal(model, configured, exact, fits):
    assert dims_match(model, configured, exact) is fits


def test_a_missing_control_is_named():
    assert "sequence control 'START'" in missing_control("START").message
