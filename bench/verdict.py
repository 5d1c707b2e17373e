"""Verdicts on ratios: the median ratio of pairs, its bootstrap interval, and a word."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

RESAMPLES = 2000


@dataclass(frozen=True)
class Verdict:
    """A median ratio with its 90 % interval from `low` to `high`, and a word."""

    ratio: float
    low: float
    high: float
    word: str

    def __str__(self) -> str:
        return f"{self.ratio:.2f} [{self.low:.2f}, {self.high:.2f}] {self.word}".rstrip()


def judge(
    ours: Sequence[float],
    theirs: Sequence[float],
    goal: float | None,
    lower_is_better: bool = False,
) -> Verdict:
    """Return the verdict on the ratios `ours[i] / theirs[i]`.

    The word is met, short, or undecided if the interval contains `goal`. It is empty without a
    goal.
    """
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    low, high = _interval(ratios)
    if goal is None:
        word = ""
    elif lower_is_better:
        word = "met" if high <= goal else "short" if low > goal else "undecided"
    else:
        word = "met" if low >= goal else "short" if high < goal else "undecided"
    return Verdict(median(ratios), low, high, word)


def judge_combined(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], goal: float
) -> Verdict:
    """Return the verdict on several rows, with the geometric mean of each round's ratios."""
    rounds = zip(
        *(
            [mine / other for mine, other in zip(ours, theirs, strict=True)]
            for ours, theirs in pairs
        ),
        strict=True,
    )
    means = [geometric_mean(ratios) for ratios in rounds]
    return judge(means, [1.0] * len(means), goal)


def _interval(ratios: Sequence[float]) -> tuple[float, float]:
    random_source = random.Random(0)  # equal results give equal intervals
    medians = sorted(median(random_source.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.05)], medians[int(RESAMPLES * 0.95)]
