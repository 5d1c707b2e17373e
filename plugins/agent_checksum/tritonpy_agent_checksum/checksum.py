"""Which checksum is meant, and what it is."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tritonpy import InvalidArgument, Unsupported

# What a key may begin with, in any case, and the name that hashlib has for it.
_ALGORITHMS = {"MD5": "md5", "SHA-256": "sha256", "SHA256": "sha256"}


def parse_key(key: str) -> tuple[str, str]:
    """Split `ALGORITHM:path`; raise InvalidArgument where there is no colon, Unsupported for an algorithm that is none of those known."""
    algorithm, colon, name = key.partition(":")
    if not colon:
        raise InvalidArgument(f"failed to parse key: {key}")
    if algorithm.upper() not in _ALGORITHMS:
        raise Unsupported(f"Unsupported checksum algorithm: {algorithm}")
    return algorithm.upper(), name


def digest_of(path: Path, algorithm: str) -> str:
    """Return the file's checksum in lower-case hexadecimal digits, read in pieces. Raises OSError."""
    with path.open("rb") as file:
        # MD5 finds what was damaged, not what was forged: it is allowed to be the one of a FIPS build.
        return hashlib.file_digest(
            file, lambda: hashlib.new(_ALGORITHMS[algorithm], usedforsecurity=algorithm != "MD5")
        ).hexdigest()
