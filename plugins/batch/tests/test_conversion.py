"""Columns become tensors without loss, or the row has an error that names the value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_batch.binding import InputBinding
from tritonpy_batch.conversion import ConversionRules, NullValue, convert, fitted_shape
from tritonpy_batch.model_interface import RowTensor

RULES = ConversionRules("fail", False, "unit")


def converted(values, kind, datatype, dims=(1,), rules=RULES):
    table = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["c"])
    errors = {}
    spec = RowTensor("X", datatype, dims)
    return convert(InputBinding(spec, ("c",)), table, errors, rules), errors


@pytest.mark.parametrize(
    ("value", "kind", "datatype", "text"),
    [
        (300, pa.int64(), "INT8", "300 (int64) is no INT8"),
        (-1, pa.int64(), "UINT32", "-1 (int64) is no UINT32"),
        (0.1, pa.float64(), "FP32", "0.1 (double) is no FP32 without rounding: use --allow"),
        (2**24 + 1, pa.int64(), "FP32", "16777217 (int64) is no FP32 without rounding"),
        (1.5, pa.float64(), "INT32", "1.5 (double) is no INT32"),
        (Decimal("0.1"), pa.decimal128(5, 2), "FP64", "0.10 (decimal128(5, 2)) is no FP64"),
        (1e300, pa.float64(), "FP16", "1e+300 (double) is no FP16 without rounding"),
    ],
)
def test_a_lossy_value_is_an_error(value, kind, datatype, text):
    column, errors = converted([1, value], kind, datatype)
    assert list(errors) == [1]
    assert text in errors[1]
    assert errors[1].startswith("column 'c': ")
    assert column.tensor(0, 1, True).numpy().tolist() == [[1]]


@pytest.mark.parametrize(
    ("values", "kind", "datatype", "expected"),
    [
        ([1, 2], pa.int8(), "INT64", [[1], [2]]),
        ([0.5, float("nan")], pa.float64(), "FP32", [[0.5], [float("nan")]]),
        ([2.0, 3.0], pa.float64(), "INT32", [[2], [3]]),
        ([Decimal("0.50"), Decimal("2")], pa.decimal128(5, 2), "FP32", [[0.5], [2.0]]),
        ([True, False], pa.bool_(), "BOOL", [[True], [False]]),
        ([1.5, 2.5], pa.float32(), "BF16", [[1.5], [2.5]]),
    ],
)
def test_values_that_fit_are_equal(values, kind, datatype, expected):
    column, errors = converted(values, kind, datatype)
    assert not errors
    found = column.tensor(0, 2, True).numpy().astype(object)
    assert np.array_equal(found.astype(np.float64), np.array(expected, np.float64), equal_nan=True)


def test_rounding_is_allowed_but_no_overflow():
    rules = ConversionRules("fail", True, "unit")
    column, errors = converted([0.1, 1e300], pa.float64(), "FP32", rules=rules)
    assert list(errors) == [1]
    assert column.tensor(0, 1, True).numpy()[0, 0] == np.float32(0.1)


def test_columns_of_the_right_type_are_not_copied():
    values = pa.array(np.arange(12, dtype=np.float32))
    table = pa.RecordBatch.from_arrays([pa.FixedSizeListArray.from_arrays(values, 4)], ["c"])
    column = convert(InputBinding(RowTensor("X", "FP32", (4,)), ("c",)), table.slice(1), {}, RULES)
    tensor = column.tensor(0, 2, True)
    assert tensor.numpy().tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert tensor.data.ctypes.data == values.buffers()[1].address + 16


@given(st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=8))
def test_lists_of_any_length_keep_their_rows(rows):
    column, errors = converted(rows, pa.list_(pa.int64()), "INT64", (-1,))
    assert not errors
    assert [column.tensor(at, at + 1, True).numpy()[0].tolist() for at in range(len(rows))] == rows


@pytest.mark.parametrize("rows", [[["a", "bb"], ["", "é"]], [["x", "y"], None]])
def test_texts_are_in_wire_form(rows):
    rules = ConversionRules("default", False, "unit")
    column, errors = converted(rows, pa.list_(pa.string()), "BYTES", (2,), rules)
    assert not errors
    expected = [[text.encode() for text in row or ["", ""]] for row in rows]
    assert column.tensor(0, 2, True).numpy().tolist() == expected
    assert column.tensor(1, 2, True).numpy().tolist() == expected[1:]
    assert column.take([1]).tensor(0, 1, True).numpy().tolist() == expected[1:]


def test_nested_lists_and_flat_ones_fit_a_shape():
    nested = [[[1, 2, 3], [4, 5, 6]]]
    for values, kind in (
        (nested, pa.list_(pa.list_(pa.int32()))),
        ([[1, 2, 3, 4, 5, 6]], pa.list_(pa.int32())),
        ([[1, 2, 3, 4, 5, 6]], pa.list_(pa.int32(), 6)),
    ):
        column, errors = converted(values, kind, "INT32", (2, 3))
        assert not errors
        assert column.tensor(0, 1, True).numpy().tolist() == nested


def test_a_row_of_another_shape_is_an_error():
    column, errors = converted([[1, 2], [1, 2, 3], [3, 4]], pa.list_(pa.int32()), "INT32", (2,))
    assert errors == {1: "column 'c' has the shape [3], not [2]"}
    assert column.take([0, 2]).tensor(0, 2, True).numpy().tolist() == [[1, 2], [3, 4]]
    _, errors = converted([[[1], [2, 3]]], pa.list_(pa.list_(pa.int32())), "INT32", (2, 2))
    assert "lists of unequal lengths" in errors[0]


def test_a_null_within_a_list_names_its_row():
    with pytest.raises(NullValue) as caught:
        converted([[1, 2], [3, None]], pa.list_(pa.int32()), "INT32", (2,))
    assert (caught.value.row, caught.value.column) == (1, "c")


def test_several_columns_become_the_last_dimension():
    table = pa.RecordBatch.from_pydict({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    binding = InputBinding(RowTensor("X", "FP64", (2,)), ("a", "b"))
    column = convert(binding, table, {}, RULES)
    assert column.tensor(0, 2, True).numpy().tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("found", "dims", "expected"),
    [
        ((4,), (4,), (4,)),
        ((), (1,), (1,)),
        ((6,), (2, 3), (2, 3)),
        ((6,), (-1, 3), (2, 3)),
        ((6,), (-1, 4), None),
        ((5,), (4,), None),
        ((2, 3), (3, 2), None),
        ((6,), (-1, -1), None),
    ],
)
def test_shapes_that_fit(found, dims, expected):
    assert fitted_shape(found, dims) == expected
