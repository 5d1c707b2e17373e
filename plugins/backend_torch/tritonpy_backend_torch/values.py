"""The text values of parameters, with Triton's words for what they are not."""

from __future__ import annotations

from tritonpy import InvalidArgument

_TRUE, _FALSE = frozenset({"true", "on", "1"}), frozenset({"false", "off", "0"})


def as_bool(value: str) -> bool:
    """Return the switch that `value` is; raises InvalidArgument."""
    word = value.lower()
    if word not in _TRUE | _FALSE:
        raise InvalidArgument(f"failed to convert '{value}' to boolean")
    return word in _TRUE


def as_int(value: str) -> int:
    """Return the number that `value` is; raises InvalidArgument."""
    try:
        return int(value)
    except ValueError:
        raise InvalidArgument(f"failed to convert '{value}' to integral number") from None
