"""Model versions as the protocol writes them."""

from __future__ import annotations

from tritonpy import InvalidArgument

_LARGEST = 2**63 - 1


def parse_version(text: str) -> int:
    """Return the version, -1 where the client leaves the choice to the server. Raises InvalidArgument."""
    if not text:
        return -1
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or int(digits) > _LARGEST:
        raise InvalidArgument(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    if digits != text:
        raise InvalidArgument(f"invalid model version specified '{text}' , version should be an integral value > 0")
    return int(digits)
