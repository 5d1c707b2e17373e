"""Parsing of a model's parameters, with Triton's error texts plus the parameter's key."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tritonpy_types.errors import InvalidArgument

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
MOST_THREADS = 4096
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # frameworks use signed 32-bit integers
_DECIMAL = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BINARY = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_FACTORS = _DECIMAL | _BINARY
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parameter_bool(key: str, value: str) -> bool:
    """Return the boolean for true, on, 1, false, off or 0, in any case.

    Raises InvalidArgument for any other text.
    """
    try:
        return _BOOLS[value.lower()]
    except KeyError:
        raise _no(key, value, "boolean", ", ".join(_BOOLS)) from None


def parameter_int(key: str, value: str, least: int = _LEAST, most: int = _MOST) -> int:
    """Return `value` as an integer from `least` to `most`.

    Raises InvalidArgument for anything else.
    """
    try:
        number = int(value)
    except ValueError:
        raise _no(key, value, "integral number", "such as 4") from None
    if not least <= number <= most:
        bound = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidArgument(f"parameter '{key}' is {number}, it must be {bound}")
    return number


def parameter_threads(key: str, value: str) -> int:
    """Return a number of threads, 0 if `value` is below 1.

    Raises InvalidArgument for any other text, and for more than MOST_THREADS: frameworks abort the
    whole process if they cannot create that many.
    """
    return max(parameter_int(key, value, most=MOST_THREADS), 0)


def parameter_bytes(key: str, value: str, least: int = 0) -> int:
    """Return a number of bytes, at least `least`, such as "1048576" or "1MiB".

    Raises InvalidArgument for anything else.
    """
    try:
        size = parse_byte_size(value)
    except ValueError:
        raise _no(
            key, value, "unsigned long long integral number", "bytes, such as 536870912 or 512MiB"
        ) from None
    if not least <= size < 1 << 64:
        raise InvalidArgument(
            f"parameter '{key}' is {size}, it must be a number of bytes of at least {least}"
        )
    return size


def parse_byte_size(text: str) -> int:
    """Return the number of bytes; "MB" is 10**6, "MiB" is 2**20.

    Raises ValueError for other texts.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in _FACTORS:
        raise ValueError(f"'{text}' is not a size in bytes")
    factor = _FACTORS[match[2].lower()]
    return int(match[1]) * factor if "." not in match[1] else int(float(match[1]) * factor)


def parameter_choice(key: str, value: str, choices: Iterable[str]) -> str:
    """Return the one of `choices`, which are in lower case, that equals `value` in any case.

    Raises InvalidArgument for anything else.
    """
    if value.lower() not in (known := tuple(choices)):
        raise InvalidArgument(
            f"parameter '{key}' is '{value}', it must be one of {', '.join(known)}"
        )
    return value.lower()


def _no(key: str, value: str, kind: str, examples: str) -> InvalidArgument:
    return InvalidArgument(f"parameter '{key}': failed to convert '{value}' to {kind} ({examples})")
