"""Types of flag values for argparse. Each raises ArgumentTypeError with the invalid value."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

from tritonpy_bench.sweep import LoadRange, parse_range


def load_range(text: str) -> LoadRange:
    """Parse `start[:end[:step]]`."""
    try:
        return parse_range(text)
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}': {error}") from error


def header(text: str) -> tuple[str, str]:
    """Parse `Name: value`."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise ArgumentTypeError(f"'{text}' is not a header: expected Name:Value")
    return name.strip(), value.strip()


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse `input:1,2,3`."""
    name, colon, dims = text.rpartition(":")  # names may contain colons
    try:
        numbers = tuple(int(dim) for dim in dims.split(","))
    except ValueError:
        numbers = (-1,)
    if not colon or not name or min(numbers) < 0:
        raise ArgumentTypeError(f"'{text}' is not a shape: expected INPUT:DIM,DIM,…")
    return name, numbers


def parameter(text: str) -> tuple[str, str | int | float | bool]:
    """Parse `name:value:type`."""
    name, _, rest = text.partition(":")
    value, _, kind = rest.rpartition(":")
    kinds: dict[str, Callable[[str], str | int | float | bool]] = {
        "string": str,
        "int": int,
        "uint": int,
        "float": float,
        "double": float,
        "bool": truth,
    }
    if not name or kind not in kinds:
        raise ArgumentTypeError(
            f"'{text}' is not a parameter: expected NAME:VALUE:TYPE, TYPE one of {', '.join(kinds)}"
        )
    try:
        return name, kinds[kind](value)
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}': '{value}' is not of type {kind}") from error


def id_range(text: str) -> tuple[int, int | None]:
    """Parse `start[:end]`."""
    start, colon, end = text.partition(":")
    try:
        return int(start), int(end) if colon else None
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}' is not a range of ids: expected START[:END]") from error


def truth(text: str) -> bool:
    """Parse a boolean: true, 1, on, false, 0 or off."""
    known = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if text.lower() not in known:
        raise ArgumentTypeError(f"'{text}' is neither true nor false")
    return known[text.lower()]
