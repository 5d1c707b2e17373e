"""The list of intended differences, `differences.toml`, and what it says of an exchange."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.conformance.comparing import Difference

LIST = Path(__file__).resolve().parent / "differences.toml"


@dataclass(frozen=True)
class Intended:
    """Places of exchanges that differ for a reason. `exchange` and `at` are patterns with `*`; `triton` and `tritonpy`, where
    given, are regular expressions that the two values match as a whole. `added` is one for what tritonpy's text says besides: without
    that the two texts are equal. With `after_others` the exchanges before it in its topic make the difference: a sample may
    lack them."""

    exchange: str
    at: str
    reason: str
    triton: str | None = None
    tritonpy: str | None = None
    added: str | None = None
    after_others: bool = False

    def covers(self, exchange: str, difference: Difference) -> bool:
        """Return whether it speaks of this difference."""
        return (
            self.concerns(exchange)
            and fnmatchcase(difference.at, self.at)
            and _fits(self.triton, difference.triton)
            and _fits(self.tritonpy, difference.tritonpy)
            and (self.added is None or re.sub(self.added, "", str(difference.tritonpy)) == str(difference.triton))
        )

    def concerns(self, exchange: str) -> bool:
        """Return whether it speaks of something in this exchange."""
        return fnmatchcase(exchange, self.exchange)


@dataclass(frozen=True)
class Verdict:
    """What two servers' answers to one exchange come to."""

    unlisted: list[Difference]
    listed: list[Difference]
    vanished: list[Intended]

    @property
    def good(self) -> bool:
        return not self.unlisted and not self.vanished

    def __str__(self) -> str:
        gone = [
            f"listed, but no longer different: {entry.exchange} at {entry.at}: {entry.reason}"
            for entry in self.vanished
        ]
        return "\n".join([*map(str, self.unlisted), *gone])


def read(path: Path = LIST) -> list[Intended]:
    """Read the list; TypeError for keys that are not known or missing, ValueError for an entry without a reason."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = [
        Intended(**{**entry, "exchange": name}) for entry in content["difference"] for name in _names(entry["exchange"])
    ]
    for entry in entries:
        if not entry.reason.strip():
            raise ValueError(f"the difference of '{entry.exchange}' at '{entry.at}' has no reason")
    return entries


def judge(exchange: str, found: list[Difference], intended: list[Intended], *, sample: bool = False) -> Verdict:
    """Sort the differences of one exchange. An entry that speaks of the exchange and covers none of them has vanished, unless it is a `sample` that lacks why."""
    concerned = [entry for entry in intended if entry.concerns(exchange)]
    listed = [difference for difference in found if any(entry.covers(exchange, difference) for entry in concerned)]
    unlisted = [difference for difference in found if difference not in listed]
    vanished = [
        entry
        for entry in concerned
        if not any(entry.covers(exchange, difference) for difference in found) and not (sample and entry.after_others)
    ]
    return Verdict(unlisted, listed, vanished)


def _names(exchange: str | list[str]) -> list[str]:
    return [exchange] if isinstance(exchange, str) else exchange


def _fits(pattern: str | None, value: Any) -> bool:
    return pattern is None or re.fullmatch(pattern, str(value), re.DOTALL) is not None
