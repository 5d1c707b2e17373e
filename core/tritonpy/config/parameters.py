"""Reads the text values of a model's parameters: Triton's words for what they are not, and the key, which Triton does not name."""

from __future__ import annotations

from collections.abc import Iterable

from tritonpy.config.server.byte_size import parse_byte_size
from tritonpy.errors import InvalidArgument

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
MOST_THREADS = 4096
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # frameworks take such numbers as signed integers of 32 bits


def parameter_bool(key: str, value: str) -> bool:
    """Return what true, on, 1, false, off or 0 mean, in any case; raises InvalidArgument for anything else."""
    try:
        return _BOOLS[value.lower()]
    except KeyError:
        raise _no(key, value, "boolean", ", ".join(_BOOLS)) from None


def parameter_int(key: str, value: str, least: int = _LEAST, most: int = _MOST) -> int:
    """Return the integer that `value` spells, from `least` to `most`; raises InvalidArgument for anything else."""
    try:
        number = int(value)
    except ValueError:
        raise _no(key, value, "integral number", "such as 4") from None
    if not least <= number <= most:
        bound = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidArgument(f"parameter '{key}' is {number}, it must be {bound}")
    return number


def parameter_threads(key: str, value: str) -> int:
    """Return a number of threads, 0 where `value` is below 1; raises InvalidArgument for anything else.

    More than MOST_THREADS is refused: frameworks end the whole process where so many cannot be had.
    """
    return max(parameter_int(key, value, most=MOST_THREADS), 0)


def parameter_bytes(key: str, value: str, least: int = 0) -> int:
    """Return the number of bytes, at least `least`, that "1048576" or "1MiB" means; raises InvalidArgument for anything else."""
    try:
        size = parse_byte_size(value)
    except ValueError:
        raise _no(key, value, "unsigned long long integral number", "bytes, such as 536870912 or 512MiB") from None
    if not least <= size < 1 << 64:
        raise InvalidArgument(f"parameter '{key}' is {size}, it must be a number of bytes of at least {least}")
    return size


def parameter_choice(key: str, value: str, choices: Iterable[str]) -> str:
    """Return that of `choices`, which are in lower case, that `value` is in any case; raises InvalidArgument for anything else."""
    if value.lower() not in (known := tuple(choices)):
        raise InvalidArgument(f"parameter '{key}' is '{value}', it must be one of {', '.join(known)}")
    return value.lower()


def _no(key: str, value: str, kind: str, examples: str) -> InvalidArgument:
    return InvalidArgument(f"parameter '{key}': failed to convert '{value}' to {kind} ({examples})")
