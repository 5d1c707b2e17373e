from __future__ import annotations

import pytest

from tritonpy_ensemble.shapes import adapt_shape


@pytest.mark.parametrize(
    ("shape", "rows", "dims", "batched", "expected"),
    [
        ((2, 3), 2, (3,), True, (2, 3)),
        ((3,), 0, (3,), False, (3,)),
        ((3,), 0, (3,), True, (1, 3)),
        ((3,), 0, (-1,), True, (1, 3)),
        ((1, 3), 0, (3,), True, (1, 3)),
        ((4, 3), 0, (3,), True, (4, 3)),
        ((1, 3), 1, (3,), False, (3,)),
        ((1, 3), 1, (-1, 3), False, (1, 3)),
        ((4, 3), 4, (3,), False, (4, 3)),
        ((4, 3), 4, (4, 3), False, (4, 3)),
        ((1,), 1, (), False, ()),
        ((), 0, (), True, (1,)),
    ],
)
def test_a_batch_dimension_of_one_is_added_or_removed_if_only_one_side_has_it(
    shape, rows, dims, batched, expected
):
    assert adapt_shape(shape, rows, dims, batched) == expected
