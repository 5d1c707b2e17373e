"""The one rule for every figure: the median of the pairs' ratios, its bootstrap interval, and a word."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

RESAMPLES = 2000


@dataclass(frozen=True)
class Verdict:
    """`low` and `high` bound the 90 % interval of the median ratio."""

    ratio: float
    low: float
    high: float
    word: str

    def __str__(self) -> str:
        return f"{self.ratio:.2f} [{self.low:.2f}, {self.high:.2f}] {self.word}".rstrip()


def judge(ours: Sequence[float], theirs: Sequence[float], goal: float | None, lower_is_better: bool = False) -> Verdict:
    """Judge the pairs `ours[i] / theirs[i]` against `goal`: met, short, or undecided where the interval straddles it; no word without a goal."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    low, high = _interval(ratios)
    if goal is None:
        word = ""
    elif lower_is_better:
        word = "met" if high <= goal else "short" if low > goal else "undecided"
    else:
        word = "met" if low >= goal else "short" if high < goal else "undecided"
    return Verdict(median(ratios), low, high, word)


def judge_together(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], goal: float) -> Verdict:
    """Judge several rows as one: each round counts with the geometric mean of its ratios, `ours[i] / theirs[i]` of every row."""
    rounds = zip(
        *([mine / other for mine, other in zip(ours, theirs, strict=True)] for ours, theirs in pairs), strict=True
    )
    means = [geometric_mean(ratios) for ratios in rounds]
    return judge(means, [1.0] * len(means), goal)


def _interval(ratios: Sequence[float]) -> tuple[float, float]:
    random_source = random.Random(0)  # the same figures give the same interval
    medians = sorted(median(random_source.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.05)], medians[int(RESAMPLES * 0.95)]
