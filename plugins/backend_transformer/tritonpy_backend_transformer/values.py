"""Parsers of parameter values, which may be text, numbers or booleans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import InvalidArgument

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
ValueParser = Callable[[str, Any], Any]


def whole_number(minimum: int, maximum: int | None = None) -> ValueParser:
    """Return a parser of whole numbers from `minimum` to `maximum`."""

    def read(name: str, value: Any) -> int:
        try:
            number = int(value)
            fits = (
                number == float(value)
                and number >= minimum
                and (maximum is None or number <= maximum)
            )
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            bound = f" and at most {maximum}" if maximum is not None else ""
            raise InvalidArgument(
                f"'{name}' must be a whole number of at least {minimum}{bound}, not '{value}'"
            )
        return number

    return read


def real_number(
    minimum: float, maximum: float | None = None, exclusive_minimum: bool = False
) -> ValueParser:
    """Return a parser of numbers from `minimum` (excluded if `exclusive_minimum`) to `maximum`."""

    def read(name: str, value: Any) -> float:
        try:
            number = float(value)
            fits = (number > minimum if exclusive_minimum else number >= minimum) and number <= (
                maximum or float("inf")
            )
            fits = fits and number != float("inf")
        except (TypeError, ValueError):
            fits = False
        if not fits:
            above = "more than" if exclusive_minimum else "at least"
            bound = f" and at most {maximum:g}" if maximum is not None else ""
            raise InvalidArgument(
                f"'{name}' must be a number of {above} {minimum:g}{bound}, not '{value}'"
            )
        return number

    return read


def boolean(name: str, value: Any) -> bool:
    """Return the value of a boolean, or of true, on, 1, false, off or 0 as text.

    Raises `InvalidArgument`.
    """
    try:
        return _BOOLS[str(value).lower()]
    except KeyError:
        raise InvalidArgument(f"'{name}' must be true or false, not '{value}'") from None


def strings(name: str, value: Any) -> tuple[str, ...]:
    """Return one string, or several, as a tuple without empty ones. Raises `InvalidArgument`."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise InvalidArgument(f"'{name}' must be a string or a list of strings, not '{value}'")
    return tuple(each for each in given if each)


def whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    """Return one whole number, or several, as a tuple. Raises `InvalidArgument`."""
    given = value if isinstance(value, (list, tuple)) else [value]
    return tuple(whole_number(0)(name, each) for each in given)


def choice(options: Mapping[str, Any]) -> ValueParser:
    """Return a parser that maps the names in `options` to their values."""

    def read(name: str, value: Any) -> Any:
        try:
            return options[str(value).lower()]
        except KeyError:
            raise InvalidArgument(
                f"'{name}' must be one of {', '.join(options)}, not '{value}'"
            ) from None

    return read
