"""Time to list and load 200 models from a slow cloud store, sequentially and in parallel.

The store is fake-gcs-server behind a proxy that delays each response. Run it manually in the
environment of the cloud tests: `.test-venv/clouds/bin/python -m bench.repositories`.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plugins.repo_cloud.tests.stores.gcs import Gcs
from plugins.repo_cloud.tests.stores.proxy import FaultyProxy, Request
from plugins.repo_cloud.tests.stores.store_folder import StoreFolder
from tritonpy import Backend, hookimpl
from tritonpy.server.embedded import running_server

CONFIG = (
    b'backend: "reader" input { name: "IN" data_type: TYPE_INT32 dims: 1 } '
    b'output { name: "OUT" data_type: TYPE_INT64 dims: 1 }'
)
NO_PORTS = {"http": False, "grpc": False, "metrics": False}
SERIAL = 1
AT_ONCE = 16


class Reader(Backend):
    """Reads its file, like a backend that loads weights."""

    def __init__(self, model: Any, instance: Any) -> None:
        super().__init__(model, instance)
        self.size = len((model.path / "weights").read_bytes())

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the size of the file."""
        return {"OUT": np.array([self.size])}


class Readers:
    """The plugin with the backend."""

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        return {"reader": Reader}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long `function` took, in seconds, and what it returned."""
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def loading(store: StoreFolder, port: int, cache: Path, at_once: int) -> float:
    """Return the seconds until a server has loaded all models."""
    options = store.options(port, settle_s=0, parallel=at_once, cache_directory=str(cache))
    repositories = [{"url": store.url(port), "options": options}]
    started = time.perf_counter()
    with running_server(
        {"repositories": repositories, "frontends": NO_PORTS, "control": {"threads": at_once}},
        [Readers()],
    ):
        return time.perf_counter() - started


def measure(store: StoreFolder, proxy: FaultyProxy, folder: Path, count: int) -> None:
    """Measure and print the table."""
    repository = store.repository(proxy.port, settle_s=0)
    listing, models = timed(repository.scan)
    repository.close()
    assert len(models) == count
    serial = loading(store, proxy.port, folder / "serial", SERIAL)
    at_once = loading(store, proxy.port, folder / "at once", AT_ONCE)
    cached = loading(store, proxy.port, folder / "at once", AT_ONCE)
    print(f"| listing {count} models | {listing:.2f} s | |")
    print(f"| loading them sequentially | {serial:.2f} s | 1 |")
    print(
        f"| loading {AT_ONCE} in parallel | {at_once:.2f} s | {serial / at_once:.1f} times as "
        "fast |"
    )
    print(f"| the same from the cache | {cached:.2f} s | {serial / cached:.1f} times as fast |")


def main() -> None:
    """Fill a store, measure, and end the store."""
    parser = argparse.ArgumentParser(
        description="Listing and loading many models of a repository in a cloud."
    )
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--kilobytes", type=int, default=256, help="size of each model's weights")
    parser.add_argument(
        "--delay-ms", type=float, default=20, help="delay of each response of the store"
    )
    arguments = parser.parse_args()

    def wait(_request: Request) -> None:
        time.sleep(arguments.delay_ms / 1000)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Gcs.start(folder)
        proxy = FaultyProxy(server.port)
        try:
            store = StoreFolder(server, folder / "cache")
            weights = {"config.pbtxt": CONFIG, "1/weights": b""}
            for number in range(arguments.models):
                for path, content in {
                    **weights,
                    "1/weights": secrets.token_bytes(arguments.kilobytes << 10),
                }.items():
                    store.put(f"model{number}/{path}", content)
            proxy.rule = wait
            print(
                f"{arguments.models} models of {arguments.kilobytes} KiB, "
                f"{arguments.delay_ms:g} ms delay of each response"
            )
            measure(store, proxy, folder, arguments.models)
        finally:
            proxy.end()
            server.end()


if __name__ == "__main__":
    main()
