from __future__ import annotations

import numpy as np
import pytest

from tritonpy_worker.added_inputs import added_inputs
from tritonpy_worker.api.tensor import Tensor

START = Tensor("START", np.array([[1], [0], [1]], np.int32))
WORDS = Tensor("WORDS", np.array([[b"a"], [b"bc"], [b""]], object))


@pytest.mark.parametrize("count", [3, 1, 0])
def test_each_request_gets_its_row_of_each_tensor(count: int) -> None:
    given = added_inputs([START, WORDS], count)
    assert [[(tensor.name(), tensor.as_numpy().tolist()) for tensor in row] for row in given] == [
        [
            ("START", START.as_numpy()[row : row + 1].tolist()),
            ("WORDS", WORDS.as_numpy()[row : row + 1].tolist()),
        ]
        for row in range(count)
    ]


def test_without_added_tensors_there_are_no_added_inputs() -> None:
    assert added_inputs([], 2) == [[], []]
