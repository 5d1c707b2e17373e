"""What is certain of a rate after so many trials, however often one looks. Pure.

Looking after every answer, a plain test of significance would sooner or later condemn any canary. Here the likelihood of the outcomes under every
rate, mixed with the uniform distribution, is divided by their likelihood under one rate: if that rate is the true one, the quotient is a
martingale that begins with 1, and the probability that it ever reaches 1/a is at most a (Ville's inequality). What is certain holds at all times at once.
"""

from __future__ import annotations

from math import lgamma, log

_HALVINGS = 40


def evidence(bad: int, total: int, rate: float) -> float:
    """Return the logarithm of how much likelier `bad` of `total` are under the mixture than under `rate`, in (0, 1)."""
    good = total - bad
    mixture = lgamma(bad + 1) + lgamma(good + 1) - lgamma(total + 2)
    return mixture - bad * log(rate) - good * log(1 - rate)


def exceeds(bad: int, total: int, rate: float, doubt: float) -> bool:
    """Say whether the true rate is certainly above `rate`; wrong with a probability of at most `doubt`, over all times."""
    if rate >= 1 or bad <= rate * total:
        return False
    return rate <= 0 or evidence(bad, total, rate) >= -log(doubt)


def lowest_rate(bad: int, total: int, doubt: float) -> float:
    """Return the highest rate that the true one certainly exceeds, 0 where none is."""
    low, high = 0.0, bad / total if total else 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle > 0 and exceeds(bad, total, middle, doubt):
            low = middle
        else:
            high = middle
    return low


def highest_rate(bad: int, total: int, doubt: float) -> float:
    """Return the lowest rate that certainly exceeds the true one, 1 where none does."""
    return 1 - lowest_rate(total - bad, total, doubt)
