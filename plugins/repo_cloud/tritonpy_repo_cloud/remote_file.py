"""A file in a store, as a listing of fsspec describes it. Pure."""

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
    """`path` is relative to the repository, and ends with a slash for a folder without files; `address` is what the file system calls it.

    `version` differs whenever the content does. `checksum` is that of the content, with its algorithm, where the store tells one;
    `modified` is in seconds since 1970. `size` is None where a listing does not tell it.
    """

    path: str
    address: str
    size: int | None
    version: str
    checksum: tuple[str, str] | None = None
    modified: float | None = None


def remote_files(root: str, found: Mapping[str, Mapping[str, Any]]) -> list[RemoteFile]:
    """Return the files that a recursive listing found below `root`, and the folders in which it found none; sorted by path."""
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
    files = [file for file in files if file.size != 0 or file.path not in inhabited]  # else Azure's mark of a folder
    empty = [RemoteFile(f"{path}/", address, 0, "empty") for path, address in folders.items() if path not in inhabited]
    return sorted([*files, *empty], key=lambda file: file.path)


def by_model(files: Iterable[RemoteFile]) -> dict[str, list[RemoteFile]]:
    """Return the files of each model: of each folder at the top that has a name and is not hidden."""
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
    """Amazon's ETag is the MD5 of what was uploaded in one part; Google tells MD5 or CRC32C, Azure an MD5 where the uploader gave one."""
    if "ETag" in info and (match := _MD5.fullmatch(str(info["ETag"]))):
        return "md5", match[1].lower()
    settings = info.get("content_settings")
    encoded = info.get("md5Hash") or getattr(settings, "content_md5", None)
    try:
        if encoded:
            return "md5", (
                base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else bytes(encoded)
            ).hex()
        if info.get("crc32c"):
            return "crc32c", base64.b64decode(str(info["crc32c"]), validate=True).hex()
    except binascii.Error:
        pass
    return None


def _modified(info: Mapping[str, Any]) -> float | None:
    for key in ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "modified", "created"):
        value = info.get(key)
        if isinstance(value, str):
            value = _time(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


def _time(text: str) -> datetime | None:
    """Read a time as clouds write it, or as HTTP does; None where it is neither."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _parents(path: str) -> Iterable[str]:
    parts = path.rstrip("/").split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
