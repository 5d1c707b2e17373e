"""Hit rates of a memory budget: 50 models, room for some of them, Zipf and uniform traffic, beside LRU in a simulation and the best there could be.

python -m bench.budget [--requests 2000] [--clients 8] [--plot bench/budget.png]
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.budget_simulation import clairvoyant, least_recently_used, trace
from tritonpy import Backend, MemoryUsage, ModelContext, hookimpl
from tritonpy.api.backend import Array
from tritonpy.testing import ModelRepository, RunningServer, running_server

MODELS = 50
SIZE = 1 << 20
ROOMS = (5, 10, 20, 30)
SKEWS = {"uniform": 0.0, "Zipf": 1.0}
BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}).encode()
CONFIG = """
backend: "weights"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""


class Weights(Backend):
    """Holds the file of its model."""

    default_filenames = ("weights.bin",)

    @classmethod
    def load(cls, model: ModelContext) -> object:
        return np.fromfile(model.path / "weights.bin", np.uint8)

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"OUT": inputs["IN"]}

    @classmethod
    def shared_memory_usage(cls, shared: Any) -> Sequence[MemoryUsage]:
        return [MemoryUsage("CPU", 0, shared.nbytes)]


class WeightsPlugin:
    """Brings that backend."""

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        return {"weights": Weights}


@dataclass(frozen=True)
class Result:
    """One run: hit rates from 0 to 1, the most that was held in bytes."""

    traffic: str
    room: int
    clients: int
    measured: float
    simulated: float
    best: float
    highest: int
    evictions: int
    seconds: float


def ask(address: str, models: Sequence[int]) -> None:
    """Ask one model after the other."""
    connection = http.client.HTTPConnection(address)
    for model in models:
        connection.request("POST", f"/v2/models/m{model}/infer", BODY)
        with connection.getresponse() as answer:
            text = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise SystemExit(f"model {model} answered {answer.status}: {text!r}")
    connection.close()


def told(server: RunningServer) -> Any:
    """Return what the server says of its memory."""
    connection = http.client.HTTPConnection(server.http)
    connection.request("GET", "/v2/memory")
    with connection.getresponse() as answer:
        said = json.load(answer)
    connection.close()
    return said


def measure(repository: Path, traffic: str, room: int, clients: int, requests: int) -> Result:
    """Run the same trace against a server that is made for it."""
    asked = trace(MODELS, requests, SKEWS[traffic], seed=1)
    memory = {"lazy": ["*"], "budget": room * SIZE}
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    config = {"repositories": [{"url": str(repository)}], "frontends": frontends, "memory": memory}
    with running_server(config, [WeightsPlugin()]) as server, ThreadPoolExecutor(clients) as pool:
        started = time.perf_counter()
        parts = [asked[place::clients] for place in range(clients)]
        list(pool.map(lambda part: ask(server.http, part), parts))
        seconds = time.perf_counter() - started
        said = told(server)
    return Result(
        traffic,
        room,
        clients,
        said["hits"] / requests,
        least_recently_used(asked, room),
        clairvoyant(asked, room),
        said["highest"]["all"],
        said["evictions"],
        seconds,
    )


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--plot", type=Path, help="draw the hit rates into this file")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    results = []
    print(f"{MODELS} models of 1 MiB, {arguments.requests} requests over HTTP")
    print("traffic  room  clients  hit rate  LRU simulated  best possible  most held  evictions       s")
    with tempfile.TemporaryDirectory() as folder:
        repository = ModelRepository(Path(folder))
        for number in range(MODELS):
            repository.add(f"m{number}", CONFIG, {1: {"weights.bin": bytes(SIZE)}})
        for traffic in SKEWS:
            for room in ROOMS:
                for clients in sorted({1, arguments.clients}):
                    one = measure(repository.path, traffic, room, clients, arguments.requests)
                    results.append(one)
                    print(
                        f"{one.traffic:8} {one.room:4} {one.clients:8} {one.measured:9.1%} {one.simulated:14.1%} {one.best:14.1%} "
                        f"{one.highest / SIZE:6.1f} MiB {one.evictions:10} {one.seconds:7.1f}",
                        flush=True,
                    )
    if arguments.plot:
        from bench.budget_plot import draw

        draw(results, arguments.plot)


if __name__ == "__main__":
    main()
