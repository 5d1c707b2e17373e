"""Checksums of files: SHA-256, and those that stores report."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

_PART = 1 << 20


def file_digests(path: Path, algorithm: str = "") -> dict[str, str]:
    """Return the hex digests of a file by algorithm: SHA-256, and `algorithm` if supported.

    `algorithm` is md5, or crc32c if its package is installed. The file is read once. Raises
    `OSError`.
    """
    hashes: dict[str, Any] = {"sha256": hashlib.sha256()}
    if algorithm == "md5":
        hashes["md5"] = hashlib.md5(usedforsecurity=False)
    elif algorithm == "crc32c":
        hashes |= _crc32c()
    with path.open("rb") as file:
        while part := file.read(_PART):
            for each in hashes.values():
                each.update(part)
    return {name: each.digest().hex() for name, each in hashes.items()}


def _crc32c() -> dict[str, Any]:
    try:
        from google_crc32c import Checksum
    except ImportError:
        return {}
    return {"crc32c": Checksum()}
