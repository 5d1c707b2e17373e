"""Two hundred models in a store that takes a while to answer: what listing and loading them takes, at once and one after the other.

The store is fake-gcs-server behind a proxy that waits before each answer. Run by hand, in the environment of the tests of clouds:
`.test-venv/clouds/bin/python -m bench.repositories`.
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
from plugins.repo_cloud.tests.stores.place import Place
from plugins.repo_cloud.tests.stores.proxy import FaultyProxy, Request
from tritonpy import Backend, hookimpl
from tritonpy.running import running_server

CONFIG = (
    b'backend: "reader" input { name: "IN" data_type: TYPE_INT32 dims: 1 } '
    b'output { name: "OUT" data_type: TYPE_INT64 dims: 1 }'
)
NO_PORTS = {"http": False, "grpc": False, "metrics": False}
SERIAL = 1
AT_ONCE = 16


class Reader(Backend):
    """Reads its file, as a backend does that loads weights."""

    def __init__(self, model: Any, instance: Any) -> None:
        super().__init__(model, instance)
        self.size = len((model.path / "weights").read_bytes())

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer with the size of the file."""
        return {"OUT": np.array([self.size])}


class Readers:
    """The plugin that brings it."""

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        return {"reader": Reader}


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long `act` took, in seconds, and what it returned."""
    started = time.perf_counter()
    result = act()
    return time.perf_counter() - started, result


def loading(place: Place, port: int, cache: Path, at_once: int) -> float:
    """Return how long a server takes until all models serve, in seconds."""
    options = place.options(port, settle_s=0, parallel=at_once, cache_directory=str(cache))
    repositories = [{"url": place.url(port), "options": options}]
    started = time.perf_counter()
    with running_server(
        {"repositories": repositories, "frontends": NO_PORTS, "control": {"threads": at_once}}, [Readers()]
    ):
        return time.perf_counter() - started


def measure(place: Place, proxy: FaultyProxy, folder: Path, count: int) -> None:
    """Print the table."""
    repository = place.repository(proxy.port, settle_s=0)
    listing, models = timed(repository.scan)
    repository.close()
    assert len(models) == count
    serial = loading(place, proxy.port, folder / "serial", SERIAL)
    at_once = loading(place, proxy.port, folder / "at once", AT_ONCE)
    kept = loading(place, proxy.port, folder / "at once", AT_ONCE)
    print(f"| listing {count} models | {listing:.2f} s | |")
    print(f"| loading them one after the other | {serial:.2f} s | 1 |")
    print(f"| loading them {AT_ONCE} at once | {at_once:.2f} s | {serial / at_once:.1f} times as fast |")
    print(f"| the same from the cache | {kept:.2f} s | {serial / kept:.1f} times as fast |")


def main() -> None:
    """Fill a store, measure, and end it."""
    parser = argparse.ArgumentParser(description="Listing and loading many models of a repository in a cloud.")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--kilobytes", type=int, default=256, help="size of each model's weights")
    parser.add_argument("--delay-ms", type=float, default=20, help="time that the store takes before each answer")
    arguments = parser.parse_args()

    def wait(_request: Request) -> None:
        time.sleep(arguments.delay_ms / 1000)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Gcs.start(folder)
        proxy = FaultyProxy(server.port)
        try:
            place = Place(server, folder / "cache")
            weights = {"config.pbtxt": CONFIG, "1/weights": b""}
            for number in range(arguments.models):
                for path, content in {**weights, "1/weights": secrets.token_bytes(arguments.kilobytes << 10)}.items():
                    place.put(f"model{number}/{path}", content)
            proxy.rule = wait
            print(
                f"{arguments.models} models of {arguments.kilobytes} KiB, {arguments.delay_ms:g} ms before each answer"
            )
            measure(place, proxy, folder, arguments.models)
        finally:
            proxy.end()
            server.end()


if __name__ == "__main__":
    main()
