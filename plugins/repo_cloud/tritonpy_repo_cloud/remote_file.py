"""Pure descriptions of store files, from listings of fsspec."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_MD5 = re.compile(r'"?([0-9a-fA-F]{32})"?')


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file in a store.

    `path` is relative to the repository and ends with a slash for an empty folder; `address` is the
    file system's path. `version` changes with the content. `checksum` is an algorithm and the
    content's checksum, if the store reports one. `modified` is in seconds since 1970. `size` is
    None if the listing does not include it.
    """

    path: str
    address: str
    size: int | None
    version: str
    checksum: tuple[str, str] | None = None
    modified: float | None = None


def remote_files(root: str, found: Mapping[str, Mapping[str, Any]]) -> list[RemoteFile]:
    """Return the files of a recursive listing of `root`, and its empty folders, sorted by path."""
    folders: dict[str, str] = {}
    files: list[RemoteFile] = []
    for address, info in found.items():
        path = address[len(root) :].removeprefix("/")
        if not path.strip("/"):
            continue
        if info.get("type") == "directory" or path.endswith("/"):
            folders[path.rstrip("/")] = address
        else:
            files.append(_remote_file(path, address, info))
    inhabited = {parent for file in files for parent in _parents(file.path)}
    inhabited |= {parent for folder in folders for parent in _parents(folder)}
    # else a folder marker of Azure
    files = [file for file in files if file.size != 0 or file.path not in inhabited]
    empty = [
        RemoteFile(f"{path}/", address, 0, "empty")
        for path, address in folders.items()
        if path not in inhabited
    ]
    return sorted([*files, *empty], key=lambda file: file.path)


def by_model(files: Iterable[RemoteFile]) -> dict[str, list[RemoteFile]]:
    """Return files by model, that is, by visible top-level folder."""
    models: dict[str, list[RemoteFile]] = {}
    for file in files:
        name, slash, _ = file.path.partition("/")
        if slash and name and not name.startswith("."):
            models.setdefault(name, []).append(file)
    return models


def _remote_file(path: str, address: str, info: Mapping[str, Any]) -> RemoteFile:
    size = info.get("size")
    checksum = _checksum(info)
    modified = _modified(info)
    tag = info.get("ETag") or info.get("etag") or info.get("generation")
    version = ":".join(checksum) if checksum else str(tag or modified or "").strip('"')
    return RemoteFile(path, address, size, f"{version}-{size}", checksum, modified)


def _checksum(info: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the checksum in a listing entry.

    Amazon's ETag is an MD5 for single-part uploads. Google reports MD5 or CRC32C, Azure an MD5 if
    the uploader set it.
    """
    if "ETag" in info and (match := _MD5.fullmatch(str(info["ETag"]))):
        return "md5", match[1].lower()
    settings = info.get("content_settings")
    encoded = info.get("md5Hash") or getattr(settings, "content_md5", None)
    try:
        if encoded:
            return "md5", (
                base64.b64decode(encoded, validate=True)
                if isinstance(encoded, str)
                else bytes(encoded)
            ).hex()
        if info.get("crc32c"):
            return "crc32c", base64.b64decode(str(info["crc32c"]), validate=True).hex()
    except binascii.Error:
        pass
    return None


def _modified(info: Mapping[str, Any]) -> float | None:
    for key in (
        "LastModified",
        "last_modified",
        "Last-Modified",
        "mtime",
        "updated",
        "modified",
        "created",
    ):
        value = info.get(key)
        if isinstance(value, str):
            value = _time(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


def _time(text: str) -> datetime | None:
    """Parse a time in ISO or HTTP format, or return None."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _parents(path: str) -> Iterable[str]:
    parts = path.rstrip("/").split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
