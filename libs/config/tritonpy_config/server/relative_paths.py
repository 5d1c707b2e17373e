"""Relative paths in server.yaml, which are relative to the folder of that file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEFAULT_REPOSITORY = "./models"


def anchor_paths(raw: object, folder: Path) -> object:
    """Return a copy of `raw`, the contents of a server.yaml in `folder`, with absolute paths.

    It changes repositories without a scheme (including the default one), the cache folder of
    repositories, the folders of backends, caches and agents, the log file and the trace file. It
    also changes options named `*file` or `*files` of authenticators, repository agents, routers,
    operations and TLS, and the certificates and the library of a cache. Values of a wrong type are
    left to the decoder.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        return raw
    result: dict[Any, Any] = {**raw}
    repositories = raw.get("repositories", [{"url": DEFAULT_REPOSITORY}])
    if isinstance(repositories, list):
        result["repositories"] = [
            _with_cache(_with_path(each, "url", folder), folder) for each in repositories
        ]
    if isinstance(raw.get("repository_options"), Mapping):
        result["repository_options"] = {
            name: _with_kept(each, folder) for name, each in raw["repository_options"].items()
        }
    for section in ("auth", "repo_agents", "routers", "operations"):
        if isinstance(raw.get(section), Mapping):
            result[section] = {
                name: _with_files(each, folder) for name, each in raw[section].items()
            }
    if isinstance(raw.get("frontends"), Mapping):
        result["frontends"] = {
            name: _with_tls(each, folder) for name, each in raw["frontends"].items()
        }
    if isinstance(raw.get("cache"), Mapping):
        result["cache"] = {
            name: _with_certificates(each, folder) for name, each in raw["cache"].items()
        }
    if "logging" in raw:
        result["logging"] = _with_path(raw["logging"], "file", folder)
    modes = raw["trace"].get("modes") if isinstance(raw.get("trace"), Mapping) else None
    if isinstance(modes, Mapping):
        result["trace"] = {
            **raw["trace"],
            "modes": {name: _with_files(each, folder) for name, each in modes.items()},
        }
    anchored: object = result
    for key in ("backend_directory", "cache_directory", "repo_agent_directory"):
        anchored = _with_path(anchored, key, folder)
    return anchored


def _with_cache(repository: object, folder: Path) -> object:
    if not isinstance(repository, Mapping) or "options" not in repository:
        return repository
    return {**repository, "options": _with_kept(repository["options"], folder)}


def _with_kept(options: object, folder: Path) -> object:
    return _with_path(_with_path(options, "cache_directory", folder), "cache-directory", folder)


def _with_tls(options: object, folder: Path) -> object:
    if not isinstance(options, Mapping) or "tls" not in options:
        return options
    return {**options, "tls": _with_files(options["tls"], folder)}


def _with_files(options: object, folder: Path) -> object:
    for key in options if isinstance(options, Mapping) else ():
        if str(key).endswith("file") or key == "library":
            options = _with_path(options, key, folder)
        elif str(key).endswith("files"):
            options = _with_paths(options, key, folder)
    return options


def _with_paths(options: Any, key: str, folder: Path) -> object:
    values = options[key]
    if not isinstance(values, list):
        return options
    return {
        **options,
        key: [str(folder / value) if isinstance(value, str) else value for value in values],
    }


def _with_certificates(options: object, folder: Path) -> object:
    for key in ("cert", "key", "cacert", "cacert_dir", "cacert-dir", "library"):
        options = _with_path(options, key, folder)
    return options


def _with_path(mapping: object, key: str, folder: Path) -> object:
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if (
        not isinstance(mapping, Mapping)
        or not isinstance(value, str)
        or not value
        or "://" in value
    ):
        return mapping
    return {**mapping, key: str(folder / value)}
