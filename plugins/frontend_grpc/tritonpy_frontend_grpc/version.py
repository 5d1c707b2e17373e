"""Parsing of model versions."""

from __future__ import annotations

import re

from tritonpy import InvalidArgument

_LARGEST = 2**63 - 1
_NUMBER = re.compile(
    r"\s*([+-]?[0-9]{1,20})(?![0-9])"
)  # like C's strtol, ignores the text after the number


def parse_version(text: str) -> int:
    """Return the version, -1 for an empty text. Raises InvalidArgument."""
    if not text:
        return -1
    number = _NUMBER.match(text)
    if number is None or "\0" in text or abs(int(number[1])) > _LARGEST:
        raise InvalidArgument(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    version = int(number[1])
    if version < 0:
        raise InvalidArgument(
            f"invalid model version specified '{text}' , version should be an integral value > 0"
        )
    return version
