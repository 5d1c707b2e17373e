"""Reads the values of flags; argparse shows what is wrong beside the flag's name."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

from tritonpy_bench.sweep import LoadRange, parse_range


def load_range(text: str) -> LoadRange:
    """Read `start[:end[:step]]`."""
    try:
        return parse_range(text)
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}': {error}") from error


def header(text: str) -> tuple[str, str]:
    """Read `Name: value`."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise ArgumentTypeError(f"'{text}' is no header: expected Name:Value")
    return name.strip(), value.strip()


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read `input:1,2,3`."""
    name, colon, dims = text.rpartition(":")  # names may hold colons
    try:
        numbers = tuple(int(dim) for dim in dims.split(","))
    except ValueError:
        numbers = (-1,)
    if not colon or not name or min(numbers) < 0:
        raise ArgumentTypeError(f"'{text}' is no shape: expected INPUT:DIM,DIM,…")
    return name, numbers


def parameter(text: str) -> tuple[str, str | int | float | bool]:
    """Read `name:value:type`."""
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
        raise ArgumentTypeError(f"'{text}' is no parameter: expected NAME:VALUE:TYPE, TYPE one of {', '.join(kinds)}")
    try:
        return name, kinds[kind](value)
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}': '{value}' is no {kind}") from error


def id_range(text: str) -> tuple[int, int | None]:
    """Read `start[:end]`."""
    start, colon, end = text.partition(":")
    try:
        return int(start), int(end) if colon else None
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}' is no range of ids: expected START[:END]") from error


def truth(text: str) -> bool:
    """Read true or false."""
    known = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if text.lower() not in known:
        raise ArgumentTypeError(f"'{text}' is neither true nor false")
    return known[text.lower()]
