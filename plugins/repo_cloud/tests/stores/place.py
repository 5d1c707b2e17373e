"""A repository of one test in a store."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from tritonpy import RepositoryContext
from tritonpy.config.server import decode_options
from tritonpy_repo_cloud.repository import CloudRepository

FOLDER = "models/here"
QUICK: Mapping[str, Any] = {"settle_s": 0.01, "patience_s": 0.5, "attempts": 3}


class Place:
    """A folder in a bucket of its own; `port` is that of the server, or of a proxy before it."""

    def __init__(self, server: Any, cache: Any) -> None:
        self.server = server
        self.bucket = f"b{secrets.token_hex(6)}"
        self.cache = cache
        server.make(self.bucket)

    def url(self, port: int = 0) -> str:
        return f"{self.server.url(self.bucket, port)}/{FOLDER}"

    def put(self, path: str, content: bytes) -> None:
        self.server.put(self.bucket, f"{FOLDER}/{path}", content)

    def delete(self, path: str) -> None:
        self.server.delete(self.bucket, f"{FOLDER}/{path}")

    def fill(self, models: Mapping[str, Mapping[str, bytes]]) -> None:
        """Make these the only models."""
        wanted = {
            f"{FOLDER}/{name}/{path}": content for name, files in models.items() for path, content in files.items()
        }
        for path in self.server.paths(self.bucket):
            if path not in wanted:
                self.server.delete(self.bucket, path)
        for path, content in wanted.items():
            self.server.put(self.bucket, path, content)

    def vanish(self) -> None:
        """Remove the bucket and all that is in it."""
        for path in self.server.paths(self.bucket):
            self.server.delete(self.bucket, path)
        self.server.drop(self.bucket)

    def options(self, port: int = 0, **more: Any) -> dict[str, Any]:
        return {**QUICK, **self.server.options(port), **more}

    def repository(self, port: int = 0, **more: Any) -> CloudRepository:
        """Open it, in the cache that all repositories of the test share."""
        options = decode_options(CloudRepository.Options, self.options(port, **more), "options")
        return CloudRepository(options, RepositoryContext(self.url(port), self.cache))
