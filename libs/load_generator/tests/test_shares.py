from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.client.shares import share_of


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_shares_add_up_and_are_even(total, client_count):
    parts = [share_of(total, client_index, client_count) for client_index in range(client_count)]
    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1
