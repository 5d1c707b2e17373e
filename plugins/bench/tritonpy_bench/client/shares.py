"""How the load of a level is dealt among client processes."""

from __future__ import annotations


def share_of(total: int, hand: int, hands: int) -> int:
    """Return this client's part of a whole number: parts differ by at most one and add up to it."""
    return total // hands + (hand < total % hands)
