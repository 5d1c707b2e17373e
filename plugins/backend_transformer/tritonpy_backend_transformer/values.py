"""Reads values that arrive as text, numbers or truth values into what they are meant to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import InvalidArgument

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
Read = Callable[[str, Any], Any]


def whole(least: int, most: int | None = None) -> Read:
    """Return what reads a whole number of at least `least`, and at most `most`."""

    def read(name: str, value: Any) -> int:
        try:
            number = int(value)
            fits = number == float(value) and number >= least and (most is None or number <= most)
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            bound = f" and at most {most}" if most is not None else ""
            raise InvalidArgument(f"'{name}' must be a whole number of at least {least}{bound}, not '{value}'")
        return number

    return read


def real(least: float, most: float | None = None, open_below: bool = False) -> Read:
    """Return what reads a number from `least` (not that itself where `open_below`) to `most`."""

    def read(name: str, value: Any) -> float:
        try:
            number = float(value)
            fits = (number > least if open_below else number >= least) and number <= (most or float("inf"))
            fits = fits and number != float("inf")
        except (TypeError, ValueError):
            fits = False
        if not fits:
            above = "more than" if open_below else "at least"
            bound = f" and at most {most:g}" if most is not None else ""
            raise InvalidArgument(f"'{name}' must be a number of {above} {least:g}{bound}, not '{value}'")
        return number

    return read


def truth(name: str, value: Any) -> bool:
    """Return what a truth value, or true, on, 1, false, off or 0 in any case, mean; raises InvalidArgument."""
    try:
        return _BOOLS[str(value).lower()]
    except KeyError:
        raise InvalidArgument(f"'{name}' must be true or false, not '{value}'") from None


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return one text, or several, as a tuple without empty ones; raises InvalidArgument."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise InvalidArgument(f"'{name}' must be a text or a list of texts, not '{value}'")
    return tuple(each for each in given if each)


def wholes(name: str, value: Any) -> tuple[int, ...]:
    """Return one whole number, or several, as a tuple; raises InvalidArgument."""
    given = value if isinstance(value, (list, tuple)) else [value]
    return tuple(whole(0)(name, each) for each in given)


def choice(options: Mapping[str, Any]) -> Read:
    """Return what reads one of the names in `options` into its value."""

    def read(name: str, value: Any) -> Any:
        try:
            return options[str(value).lower()]
        except KeyError:
            raise InvalidArgument(f"'{name}' must be one of {', '.join(options)}, not '{value}'") from None

    return read
