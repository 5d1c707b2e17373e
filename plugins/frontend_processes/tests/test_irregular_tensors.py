from __future__ import annotations

import numpy as np
import pytest

from tritonpy_frontend_processes.irregular_tensors import is_irregular, restore, split_irregular
from tritonpy_ipc import ProtocolError
from tritonpy_types import RegionSlice, Tensor

GOOD = Tensor.from_numpy("GOOD", np.ones((2, 2), np.float32))
TEXT = Tensor.from_numpy("TEXT", np.array([b"a", b""], np.object_))
REGION = Tensor("REGION", "FP32", (2,), RegionSlice("r", 4, 8))
SHORT = Tensor("SHORT", "INT32", (3,), np.frombuffer(b"12345", np.uint8))
NEGATIVE = Tensor("NEGATIVE", "INT32", (-1,), np.frombuffer(b"1234", np.uint8))
UNKNOWN = Tensor("UNKNOWN", "INT99", (1,), np.frombuffer(b"1", np.uint8))
BAD_TEXT = Tensor("BAD_TEXT", "BYTES", (-2,), np.frombuffer(b"\x01\x00\x00\x00a", np.uint8))
ODD = [REGION, SHORT, NEGATIVE, UNKNOWN, BAD_TEXT]


def as_values(tensor: Tensor) -> tuple[object, ...]:
    data = tensor.data if isinstance(tensor.data, RegionSlice) else tensor.data.tolist()
    return tensor.name, tensor.datatype, tensor.shape, data


def test_only_tensors_that_cannot_be_in_a_block_are_irregular() -> None:
    assert [is_irregular(tensor) for tensor in (GOOD, TEXT)] == [False, False]
    assert [is_irregular(tensor) for tensor in ODD] == [True] * len(ODD)


@pytest.mark.parametrize("row", [[GOOD, TEXT], ODD, [REGION, GOOD, SHORT, TEXT, NEGATIVE], []])
def test_a_row_is_restored(row: list[Tensor]) -> None:
    travels, descriptions = split_irregular(row)
    assert not any(is_irregular(tensor) for tensor in travels)
    assert [as_values(tensor) for tensor in restore(travels, descriptions)] == [
        as_values(tensor) for tensor in row
    ]


def test_data_in_a_region_is_not_copied() -> None:
    travels, _ = split_irregular([REGION])
    assert travels == []


@pytest.mark.parametrize(
    "descriptions",
    [[[5, "a", "FP32", [1]]], [[0, "a"]], [["x", "a", "FP32", [1], ["r", 0, 4]]], [7]],
)
def test_invalid_descriptions_are_protocol_errors(descriptions: list[object]) -> None:
    with pytest.raises(ProtocolError):
        restore([GOOD], descriptions)  # type: ignore[arg-type]
