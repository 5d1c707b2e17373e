"""Command-line flags: name, help, configuration key, and parsers of their values."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonpy.config import BOOLEANS

Value = Any
Parse = Callable[[str], Value]


class Status(enum.Enum):
    """Support of one of Triton's flags in this server."""

    IMPLEMENTED = "implemented"
    NO_EFFECT = "no effect"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag `--name`.

    - `path`: the key of server.yaml that the flag sets.
    - `note`: why the flag has no effect.
    - `repeated`: each use adds to a list.
    - `keyed`: the text is `[name,]setting=value`. The setting is stored below `path`, or at its
      path in `other_paths`. For settings in `lists`, each use adds to a list.
    - `combine`: merges the values of several uses. Otherwise the last use of a setting counts.
    - `revise`: converts the values for the configuration, and returns warnings.
    - `bare`: the flag takes no value.
    """

    name: str
    group: str
    parse: Parse
    help: str
    status: Status = Status.IMPLEMENTED
    path: str = ""
    note: str = ""
    repeated: bool = False
    keyed: bool = False
    other_paths: Mapping[str, str] = field(default_factory=dict, compare=False)
    lists: frozenset[str] = frozenset()
    combine: Callable[[list[Value]], list[Value]] | None = None
    bare: bool = False
    revise: Callable[[list[Value]], tuple[list[Value], list[str]]] | None = None
    metavar: str = "VALUE"

    def meaning(self) -> str:
        """Return status and reason for the help."""
        if self.status is Status.IMPLEMENTED:
            return f"implemented: {self.path}"
        return f"{self.status.value}: {self.note}"


def boolean(text: str) -> bool:
    """Return the value of a boolean in Triton's notation: true, on, 1, false, off, 0."""
    try:
        return BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(f"invalid value for bool option: {text}") from None


def integer(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Invalid option value. Got {text}") from None


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"Invalid option value. Got {text}") from None


def plain(text: str) -> str:
    """Return the text unchanged."""
    return text


def repository(text: str) -> dict[str, str]:
    """Return a repository's entry in server.yaml."""
    return {"url": text}


def integer_or_boolean(text: str) -> int:
    """Return a level. A boolean is accepted, too: true is 1."""
    return int(BOOLEANS[text.lower()]) if text.lower() in BOOLEANS else integer(text)


def not_negative(text: str) -> int:
    """Return a whole number; negative numbers become 0."""
    return max(0, integer(text))


def at_least_one(text: str) -> int:
    """Return a whole number; numbers below 1 become 1."""
    return max(1, integer(text))


def choice(flag: str, *choices: str, fold: bool = True) -> Parse:
    """Return a parser for one of `choices`. With `fold` case is ignored."""

    def parse(text: str) -> str:
        found = text.lower() if fold else text
        if found not in choices:
            raise ValueError(
                f"invalid argument for --{flag}\nIt takes one of: {', '.join(choices)}."
            )
        return found

    return parse


def not_empty(flag: str) -> Parse:
    """Return a parser for a text that must not be empty."""

    def parse(text: str) -> str:
        if not text:
            raise ValueError(f"Error: empty argument for --{flag}")
        return text

    return parse


def positive(flag: str) -> Parse:
    """Return a parser for a whole number above 0."""

    def parse(text: str) -> int:
        if integer(text) <= 0:
            raise ValueError(f"Error: --{flag} must be greater than 0.")
        return integer(text)

    return parse


def within(flag: str, low: int, high: int) -> Parse:
    """Return a parser for a whole number between `low` and `high`."""

    def parse(text: str) -> int:
        if not low <= integer(text) <= high:
            raise ValueError(
                f"invalid argument for --{flag}. Must be in the range {low} to {high}."
            )
        return integer(text)

    return parse


def setting(flag: str, owner: str = "", required: bool = False) -> Parse:
    """Return a parser for `[name,]setting=value` that returns (name, setting, value).

    `owner` describes the name; it is empty if the flag takes no name. With `required` the name is
    mandatory.
    """
    form = f"<{owner} name>,<setting>=<value>" if owner else "<setting>=<value>"

    def parse(text: str) -> tuple[str, str, str]:
        head, equals, value = text.partition("=")
        name, comma, key = head.partition(",")
        if not comma:
            name, key = "", head
        if required and not name:
            raise ValueError(f"No {owner} specified. --{flag} option format is {form}. Got {text}")
        if not equals or not key or not value or (comma and not (owner and name)):
            raise ValueError(f"--{flag} option format is '{form}'. Got {text}")
        return name, key, value

    return parse
