from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.backoff import RetryBackoff

PAUSES = RetryBackoff(0.5, 60.0)


def test_delays_double_up_to_the_maximum():
    assert [PAUSES.delay_s(failures) for failures in range(1, 10)] == [
        0.5,
        1,
        2,
        4,
        8,
        16,
        32,
        60,
        60,
    ]


@given(st.integers(1, 10_000))
def test_jitter_reduces_the_delay_by_at_most_half(failures):
    assert (
        PAUSES.delay_s(failures) / 2
        <= PAUSES.jittered_delay_s(failures)
        <= PAUSES.delay_s(failures)
        <= 60
    )
