"""Parsing of the version lists in load and unload requests."""

from __future__ import annotations

from tritonpy.errors import InvalidArgument

_HIGHEST = 2**63 - 1


def named_versions(text: str) -> list[int]:
    """Return the sorted versions in `text`: one number or several, such as "3" or "1,3".

    Raises InvalidArgument for any other text.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:20]) <= _HIGHEST for part in parts):
        raise InvalidArgument(
            f"parameter 'versions' must be version numbers with commas between them, such as '3' or '1,3', got '{text}'"
        )
    return sorted({int(part) for part in parts})
