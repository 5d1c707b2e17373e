"""Checksum algorithms and digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tritonpy import InvalidArgument, Unsupported

# Algorithm names in keys, in any case, and their names in hashlib.
_ALGORITHMS = {"MD5": "md5", "SHA-256": "sha256", "SHA256": "sha256"}


def parse_key(key: str) -> tuple[str, str]:
    """Split `ALGORITHM:path`.

    Raises `InvalidArgument` without a colon, `Unsupported` for an unknown algorithm.
    """
    algorithm, colon, name = key.partition(":")
    if not colon:
        raise InvalidArgument(f"failed to parse key: {key}")
    if algorithm.upper() not in _ALGORITHMS:
        raise Unsupported(f"Unsupported checksum algorithm: {algorithm}")
    return algorithm.upper(), name


def digest_of(path: Path, algorithm: str) -> str:
    """Return the file's checksum in lower-case hexadecimal digits. Raises `OSError`."""
    with path.open("rb") as file:
        # MD5 detects damage, not forgery, so it is also allowed on FIPS builds.
        return hashlib.file_digest(
            file, lambda: hashlib.new(_ALGORITHMS[algorithm], usedforsecurity=algorithm != "MD5")
        ).hexdigest()
