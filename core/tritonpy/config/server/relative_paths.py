"""Paths in server.yaml are relative to that file, so that it means the same wherever the server is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEFAULT_REPOSITORY = "./models"


def anchored(raw: object, folder: Path) -> object:
    """Return a copy of `raw`, the content of a server.yaml in `folder`, with its relative paths below `folder`.

    These are the repositories without a scheme, the default one too, the folder of backends, and the log file. What has another shape than
    it should is left to decoding.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        return raw
    result: dict[Any, Any] = {**raw}
    repositories = raw.get("repositories", [{"url": DEFAULT_REPOSITORY}])
    if isinstance(repositories, list):
        result["repositories"] = [_with_path(each, "url", folder) for each in repositories]
    if "logging" in raw:
        result["logging"] = _with_path(raw["logging"], "file", folder)
    return _with_path(result, "backend_directory", folder)


def _with_path(mapping: object, key: str, folder: Path) -> object:
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if not isinstance(mapping, Mapping) or not isinstance(value, str) or not value or "://" in value:
        return mapping
    return {**mapping, key: str(folder / value)}
