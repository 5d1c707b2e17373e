"""Creation of the model repositories of a server, by URL scheme."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlparse

from tritonpy.api.repository import Repository, RepositoryContext
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.plugins import PluginManager

HOOK = "tritonpy_repositories"
ANY = "*"
"""The name of the repository for schemes that no other one is registered for."""


def open_repositories(config: ServerConfig, plugins: PluginManager) -> list[Repository]:
    """Return the configured repositories in order.

    Raises `StartupError` for a scheme without a plugin, and for invalid options.
    """
    cache = cache_folder(os.environ)
    table = plugins.table(HOOK)
    repositories: list[Repository] = []
    for number, settings in enumerate(config.repositories):
        scheme = urlparse(settings.url).scheme if "://" in settings.url else "file"
        name = ANY if scheme not in table and ANY in table else scheme
        kind = plugins.get(HOOK, name, "model repository").load()
        where = f"repositories[{number}].options" if settings.options else f"repository_options.{scheme}"
        raw = {**config.repository_options.get(scheme, {}), **settings.options}
        repositories.append(kind(decode_options(kind.Options, raw, where), RepositoryContext(settings.url, cache)))
    return repositories


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for persistent data of the user's servers; it may not exist yet."""
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "tritonpy"
    if environment.get("HOME"):
        return Path(environment["HOME"]) / ".cache" / "tritonpy"
    return Path(tempfile.gettempdir()) / f"tritonpy-{os.getuid()}"
