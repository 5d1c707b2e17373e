"""Input files at any URL that fsspec reads, with a fingerprint that changes with their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import fsspec
import fsspec.core
import msgspec
import pyarrow as pa

from tritonpy_batch.options import InvalidJob

_PATTERN = frozenset("*?[")
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_LOCAL = "file://"


class InputFile(msgspec.Struct, frozen=True):
    """One file: a local path or a URL, its size in bytes, and a digest of size, time or ETag."""

    url: str
    size: int
    fingerprint: str

    @property
    def name(self) -> str:
        """The URL without the suffix of a compression: `x.jsonl` for `x.jsonl.gz`."""
        suffix = self._compression
        return self.url[: -len(suffix)] if suffix else self.url

    @property
    def compressed(self) -> bool:
        """Whether the content can only be read from its start."""
        return bool(self._compression)

    @property
    def _compression(self) -> str:
        return next((suffix for suffix in _CODECS if self.url.lower().endswith(suffix)), "")

    def open(self) -> BinaryIO:
        """Return a file object of the decompressed content."""
        handle: Any
        if "://" in self.url:
            filesystem, path = fsspec.core.url_to_fs(self.url)
            handle = filesystem.open(path, "rb", block_size=4 << 20)
        else:
            handle = open(self.url, "rb")  # noqa: SIM115 - the caller closes it
        if self.compressed:
            handle = pa.CompressedInputStream(handle, _CODECS[self._compression])
        return handle  # type: ignore[no-any-return]


def list_files(urls: Sequence[str]) -> list[InputFile]:
    """Return the files of URLs, folders and patterns, sorted by URL within each.

    In folders, names that begin with "." or "_" are left out. Raises InvalidJob if a URL has no
    file or cannot be read.
    """
    found: dict[str, InputFile] = {}
    for url in urls:
        files = _files_of(url)
        if not files:
            raise InvalidJob(f"--input {url}: no file matches")
        found |= {file.url: file for file in sorted(files, key=lambda file: file.url)}
    return list(found.values())


def _files_of(url: str) -> list[InputFile]:
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
        if _PATTERN & set(path):
            details = filesystem.glob(path, detail=True)
        elif filesystem.isdir(path):
            details = filesystem.find(path, detail=True)
            details = {name: each for name, each in details.items() if _is_visible(name, path)}
        else:
            details = {path: filesystem.info(path)}
    except (OSError, ValueError, ImportError) as error:
        raise InvalidJob(f"--input {url}: {type(error).__name__}: {error}") from error
    return [
        InputFile(
            filesystem.unstrip_protocol(name).removeprefix(_LOCAL),
            int(info["size"] or 0),
            _fingerprint(info),
        )
        for name, info in details.items()
        if info["type"] == "file"
    ]


def _is_visible(name: str, folder: str) -> bool:
    return not any(part.startswith((".", "_")) for part in name[len(folder) :].split("/"))


def _fingerprint(info: Mapping[str, Any]) -> str:
    """Return a digest of what the store knows about the content."""
    known = [
        info.get(key) for key in ("ETag", "etag", "md5Hash", "content_md5", "mtime", "created")
    ]
    content = next((str(value) for value in known if value), "")
    return hashlib.sha256(f"{info['size']} {content}".encode()).hexdigest()[:16]
