from __future__ import annotations

import numpy as np
import pytest

from tritonpy.frontend_processes.odd_tensors import is_odd, restore, tell
from tritonpy.ipc import ProtocolError
from tritonpy.types import RegionSlice, Tensor

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


def test_only_what_cannot_lie_in_a_block_is_odd() -> None:
    assert [is_odd(tensor) for tensor in (GOOD, TEXT)] == [False, False]
    assert [is_odd(tensor) for tensor in ODD] == [True] * len(ODD)


@pytest.mark.parametrize("row", [[GOOD, TEXT], ODD, [REGION, GOOD, SHORT, TEXT, NEGATIVE], []])
def test_a_row_comes_back_as_it_was(row: list[Tensor]) -> None:
    travels, told = tell(row)
    assert not any(is_odd(tensor) for tensor in travels)
    assert [as_values(tensor) for tensor in restore(travels, told)] == [as_values(tensor) for tensor in row]


def test_the_data_of_a_region_stays_where_it_is() -> None:
    travels, _ = tell([REGION])
    assert travels == []


@pytest.mark.parametrize("told", [[[5, "a", "FP32", [1]]], [[0, "a"]], [["x", "a", "FP32", [1], ["r", 0, 4]]], [7]])
def test_what_does_not_fit_is_a_broken_protocol(told: list[object]) -> None:
    with pytest.raises(ProtocolError):
        restore([GOOD], told)  # type: ignore[arg-type]
