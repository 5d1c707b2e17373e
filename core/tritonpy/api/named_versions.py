"""The versions of a model that a load or unload request names, as clients write them."""

from __future__ import annotations

from tritonpy.errors import InvalidArgument

_HIGHEST = 2**63 - 1


def named_versions(text: str) -> list[int]:
    """Return the versions of `text`: one number, or several with commas between them, such as "3" or "1,3".

    Raises InvalidArgument for anything else.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:20]) <= _HIGHEST for part in parts):
        raise InvalidArgument(
            f"parameter 'versions' must be version numbers with commas between them, such as '3' or '1,3', got '{text}'"
        )
    return sorted({int(part) for part in parts})
