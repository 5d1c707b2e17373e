"""The repository of one test in a store."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from tritonpy.repository import RepositoryContext
from tritonpy_config.server import decode_options
from tritonpy_repo_cloud.repository import CloudRepository

FOLDER = "models/here"
QUICK: Mapping[str, Any] = {"settle_s": 0.01, "completion_timeout_s": 0.5, "attempts": 3}


class StoreFolder:
    """A folder in its own bucket.

    `port` is the port of the server, or of a proxy in front of it.
    """

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
        """Store these models and remove all others."""
        wanted = {
            f"{FOLDER}/{name}/{path}": content
            for name, files in models.items()
            for path, content in files.items()
        }
        for path in self.server.paths(self.bucket):
            if path not in wanted:
                self.server.delete(self.bucket, path)
        for path, content in wanted.items():
            self.server.put(self.bucket, path, content)

    def vanish(self) -> None:
        """Remove the bucket with its contents."""
        for path in self.server.paths(self.bucket):
            self.server.delete(self.bucket, path)
        self.server.drop(self.bucket)

    def options(self, port: int = 0, **more: Any) -> dict[str, Any]:
        return {**QUICK, **self.server.options(port), **more}

    def repository(self, port: int = 0, **more: Any) -> CloudRepository:
        """Open the repository with the cache that all repositories of the test share."""
        options = decode_options(CloudRepository.Options, self.options(port, **more), "options")
        return CloudRepository(options, RepositoryContext(self.url(port), self.cache))
