from __future__ import annotations

import pytest

from tritonpy_config.tuning import DEFAULT_SETTING, thread_counts


@pytest.mark.parametrize(
    ("cores", "counts"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (16, (1, 2, 4, 8, 16))]
)
def test_thread_counts_are_powers_of_two_up_to_all_cores(cores, counts):
    assert thread_counts(cores) == (DEFAULT_SETTING, *counts)
