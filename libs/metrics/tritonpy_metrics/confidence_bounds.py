"""Confidence bounds for a failure rate and a mean that remain valid if checked any number of times.

A fixed-sample significance test, repeated after every response, would eventually reject every
canary. These bounds use a test martingale: the likelihood of the outcomes under a uniform mixture
of rates, divided by their likelihood under one rate. If that rate is the true one, the quotient is
a martingale that starts at 1. By Ville's inequality, the probability that it ever reaches 1/alpha
is at most alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, lgamma, log, sqrt

_HALVINGS = 40
_PRIOR = 0.1
"""The weight of the mixture's prior, in values; a small one decides large effects early."""
_LEAST_SPREAD = 1e-12


def log_evidence(failures: int, total: int, rate: float) -> float:
    """Return the log-likelihood ratio of the mixture to `rate`, which is in (0, 1)."""
    successes = total - failures
    mixture = lgamma(failures + 1) + lgamma(successes + 1) - lgamma(total + 2)
    return mixture - failures * log(rate) - successes * log(1 - rate)


def rate_exceeds(failures: int, total: int, rate: float, alpha: float) -> bool:
    """Return whether the true rate is above `rate`.

    The error probability over all times is at most `alpha`.
    """
    if rate >= 1 or failures <= rate * total:
        return False
    return rate <= 0 or log_evidence(failures, total, rate) >= -log(alpha)


def lower_bound(failures: int, total: int, alpha: float) -> float:
    """Return the lower confidence bound of the rate, at least 0."""
    low, high = 0.0, failures / total if total else 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle > 0 and rate_exceeds(failures, total, middle, alpha):
            low = middle
        else:
            high = middle
    return low


def upper_bound(failures: int, total: int, alpha: float) -> float:
    """Return the upper confidence bound of the rate, at most 1."""
    return 1 - lower_bound(total - failures, total, alpha)


def mean_radius(values: Sequence[float], alpha: float) -> float:
    """Return the half width of a confidence interval for the mean of normal values.

    The interval `mean ± radius` may be checked after every value: the probability that it ever
    excludes the true mean is at most `alpha`. It is infinite while the values are too few to say
    anything. It inverts the t-statistic mixture martingale of Wang and Ramdas, "Anytime-valid
    t-tests and confidence sequences for Gaussian means with unknown variance" (2023).
    """
    count = len(values)
    if count < 2:
        return inf
    mean = sum(values) / count
    spread = max(sum((value - mean) ** 2 for value in values), _LEAST_SPREAD)
    share = _PRIOR / (count + _PRIOR)
    bound = (1 / (alpha * sqrt(share))) ** (2 / count)
    if bound * share >= 1:
        return inf
    return sqrt(spread * (bound - 1) / (count * (1 - bound * share)))
