"""Reads the text values of parameters as Triton does."""

from __future__ import annotations

from tritonpy import InvalidArgument

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def parse_int(value: str) -> int:
    """Return the integer that `value` spells; raises InvalidArgument."""
    try:
        return int(value)
    except ValueError:
        raise InvalidArgument(f"failed to convert '{value}' to integral number") from None


def parse_size(value: str) -> int:
    """Return the number, 0 or above, that `value` spells; raises InvalidArgument."""
    if not value.strip().isdecimal():
        raise InvalidArgument(f"failed to convert '{value}' to unsigned long long integral number")
    return int(value)


def parse_bool(value: str) -> bool:
    """Return what true, on, 1, false, off or 0 mean, in any case; raises InvalidArgument."""
    try:
        return _BOOLS[value.lower()]
    except KeyError:
        raise InvalidArgument(f"failed to convert '{value}' to boolean") from None
