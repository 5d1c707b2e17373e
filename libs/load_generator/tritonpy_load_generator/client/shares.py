"""Distribution of a level's load among client processes."""

from __future__ import annotations


def share_of(total: int, client_index: int, client_count: int) -> int:
    """Return this client's share of `total`. Shares differ by at most one and add up to `total`."""
    return total // client_count + (client_index < total % client_count)
