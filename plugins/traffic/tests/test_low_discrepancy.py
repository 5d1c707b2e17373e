from __future__ import annotations

import pytest

from tritonpy_traffic.low_discrepancy import (
    GOLDEN,
    SQUARE_ROOT_OF_2,
    SQUARE_ROOT_OF_3,
    LowDiscrepancySequence,
)


@pytest.mark.parametrize("increment", [GOLDEN, SQUARE_ROOT_OF_2, SQUARE_ROOT_OF_3])
@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.99])
def test_a_share_holds_after_every_point(increment: float, share: float) -> None:
    spread, below = LowDiscrepancySequence(increment), 0
    for count in range(1, 5001):
        below += spread.next() < share
        assert abs(below - share * count) < 3


def test_two_sequences_are_independent() -> None:
    one, other = LowDiscrepancySequence(GOLDEN), LowDiscrepancySequence(SQUARE_ROOT_OF_2)
    both = sum((one.next() < 0.5) and (other.next() < 0.5) for _ in range(4000))
    assert abs(both - 1000) < 60
