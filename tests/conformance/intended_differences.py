"""The list of intended differences, `differences.toml`, and the verdict on an exchange."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.conformance.difference import Difference

LIST = Path(__file__).resolve().parent / "differences.toml"


@dataclass(frozen=True)
class IntendedDifference:
    """Places of exchanges that differ for a reason.

    `exchange` and `at` are patterns with `*`. `triton` and `tritonpy`, if given, are regular
    expressions that match the two whole values. `added` matches text that only tritonpy has;
    without it the two texts are equal. With `after_others`, earlier exchanges of the topic cause
    the difference, so a sample may lack it.
    """

    exchange: str
    at: str
    reason: str
    triton: str | None = None
    tritonpy: str | None = None
    added: str | None = None
    after_others: bool = False

    def covers(self, exchange: str, difference: Difference) -> bool:
        """Return whether the entry describes this difference."""
        return (
            self.concerns(exchange)
            and fnmatchcase(difference.at, self.at)
            and _fits(self.triton, difference.triton)
            and _fits(self.tritonpy, difference.tritonpy)
            and (
                self.added is None
                or re.sub(self.added, "", str(difference.tritonpy)) == str(difference.triton)
            )
        )

    def concerns(self, exchange: str) -> bool:
        """Return whether the entry applies to a part of this exchange."""
        return fnmatchcase(exchange, self.exchange)


@dataclass(frozen=True)
class Verdict:
    """The classified differences of two servers in one exchange."""

    unlisted: list[Difference]
    listed: list[Difference]
    vanished: list[IntendedDifference]

    @property
    def good(self) -> bool:
        return not self.unlisted and not self.vanished

    def __str__(self) -> str:
        gone = [
            f"listed, but no longer different: {entry.exchange} at {entry.at}: {entry.reason}"
            for entry in self.vanished
        ]
        return "\n".join([*map(str, self.unlisted), *gone])


def read(path: Path = LIST) -> list[IntendedDifference]:
    """Return the entries of the list.

    Raises TypeError for unknown or missing keys, ValueError for an entry without a reason.
    """
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = [
        IntendedDifference(**{**entry, "exchange": name})
        for entry in content["difference"]
        for name in _names(entry["exchange"])
    ]
    for entry in entries:
        if not entry.reason.strip():
            raise ValueError(f"the difference of '{entry.exchange}' at '{entry.at}' has no reason")
    return entries


def judge(
    exchange: str,
    found: list[Difference],
    intended: list[IntendedDifference],
    *,
    sample: bool = False,
) -> Verdict:
    """Classify the differences of one exchange.

    An entry for the exchange that covers none of them has vanished, unless this is a `sample` that
    lacks the cause.
    """
    concerned = [entry for entry in intended if entry.concerns(exchange)]
    listed = [
        difference
        for difference in found
        if any(entry.covers(exchange, difference) for entry in concerned)
    ]
    unlisted = [difference for difference in found if difference not in listed]
    vanished = [
        entry
        for entry in concerned
        if not any(entry.covers(exchange, difference) for difference in found)
        and not (sample and entry.after_others)
    ]
    return Verdict(unlisted, listed, vanished)


def _names(exchange: str | list[str]) -> list[str]:
    return [exchange] if isinstance(exchange, str) else exchange


def _fits(pattern: str | None, value: Any) -> bool:
    return pattern is None or re.fullmatch(pattern, str(value), re.DOTALL) is not None
