from __future__ import annotations

import pytest

from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.leases import Leases
from tritonpy_repo_cloud.cache.model_cache import ModelCache


class Server:
    """One of several servers that share a cache."""

    def __init__(self, folder, limit):
        self.folder = folder
        self.blobs = Blobs(folder.blobs)
        self.leases = Leases(folder, self.blobs)
        self.cache = ModelCache(folder, limit)

    def keep(self, key, content, lease, model="m"):
        """Store an object like a download, in one piece, and return its digest."""
        from threading import Event

        from tritonpy_repo_cloud.checksum import file_digests

        with self.cache.exclusive_fetch(model, Event()) as folder:
            (partial,) = self.cache.allocate(folder, {key: len(content)})
            if content:
                partial.write(0, content)
            digest = file_digests(partial.path)["sha256"]
            self.cache.publish(key, partial, digest, lease)
        return digest

    def close(self):
        self.leases.close()
        self.cache.close()


@pytest.fixture
def folder(tmp_path):
    made = CacheFolder(tmp_path / "cache")
    made.make()
    return made


@pytest.fixture
def server(folder):
    """`server(limit)`: another server with the same cache."""
    started = []

    def start(limit=1 << 40):
        started.append(Server(folder, limit))
        return started[-1]

    yield start
    for each in started:
        each.close()
