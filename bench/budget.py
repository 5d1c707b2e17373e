"""Hit rates of a memory budget: 50 models of which some fit, under Zipf and uniform traffic.

The measured rates are compared with simulated LRU and with the optimal policy.

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

from bench.budget_simulation import least_recently_used, optimal, trace
from tritonpy import Backend, MemoryUsage, ModelContext, hookimpl
from tritonpy.api.backend import Array
from tritonpy_testing import ModelRepository, RunningServer, running_server

MODELS = 50
SIZE = 1 << 20
CAPACITIES = (5, 10, 20, 30)
SKEWS = {"uniform": 0.0, "Zipf": 1.0}
BODY = json.dumps(
    {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
).encode()
CONFIG = """
backend: "weights"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""


class Weights(Backend):
    """Keeps its model's file in memory."""

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
    """The plugin with the backend."""

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        return {"weights": Weights}


@dataclass(frozen=True)
class Result:
    """One run: hit rates from 0 to 1; `highest` is the maximum memory held, in bytes."""

    traffic: str
    capacity: int
    clients: int
    measured: float
    simulated: float
    best: float
    highest: int
    evictions: int
    seconds: float


def send_requests(address: str, models: Sequence[int]) -> None:
    """Send one request to each model, in order."""
    connection = http.client.HTTPConnection(address)
    for model in models:
        connection.request("POST", f"/v2/models/m{model}/infer", BODY)
        with connection.getresponse() as response:
            text = response.read()
            if response.status != http.HTTPStatus.OK:
                raise SystemExit(f"model {model} responded with {response.status}: {text!r}")
    connection.close()


def memory_report(server: RunningServer) -> Any:
    """Return the server's memory report."""
    connection = http.client.HTTPConnection(server.http)
    connection.request("GET", "/v2/memory")
    with connection.getresponse() as response:
        report = json.load(response)
    connection.close()
    return report


def measure(repository: Path, traffic: str, capacity: int, clients: int, requests: int) -> Result:
    """Run a trace against a new server with the given capacity."""
    requested = trace(MODELS, requests, SKEWS[traffic], seed=1)
    memory = {"lazy": ["*"], "budget": capacity * SIZE}
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    config = {"repositories": [{"url": str(repository)}], "frontends": frontends, "memory": memory}
    with running_server(config, [WeightsPlugin()]) as server, ThreadPoolExecutor(clients) as pool:
        started = time.perf_counter()
        parts = [requested[place::clients] for place in range(clients)]
        list(pool.map(lambda part: send_requests(server.http, part), parts))
        seconds = time.perf_counter() - started
        report = memory_report(server)
    return Result(
        traffic,
        capacity,
        clients,
        report["hits"] / requests,
        least_recently_used(requested, capacity),
        optimal(requested, capacity),
        report["highest"]["all"],
        report["evictions"],
        seconds,
    )


def main() -> None:
    """Measure, print a table, and draw the plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--plot", type=Path, help="draw the hit rates into this file")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    results = []
    print(f"{MODELS} models of 1 MiB, {arguments.requests} requests over HTTP")
    print(
        "traffic  fits  clients  hit rate  LRU simulated  best possible   max held  evictions    "
        "   s"
    )
    with tempfile.TemporaryDirectory() as folder:
        repository = ModelRepository(Path(folder))
        for number in range(MODELS):
            repository.add(f"m{number}", CONFIG, {1: {"weights.bin": bytes(SIZE)}})
        for traffic in SKEWS:
            for capacity in CAPACITIES:
                for clients in sorted({1, arguments.clients}):
                    one = measure(repository.path, traffic, capacity, clients, arguments.requests)
                    results.append(one)
                    print(
                        f"{one.traffic:8} {one.capacity:4} {one.clients:8} {one.measured:9.1%} "
                        f"{one.simulated:14.1%} {one.best:14.1%} "
                        f"{one.highest / SIZE:6.1f} MiB {one.evictions:10} {one.seconds:7.1f}",
                        flush=True,
                    )
    if arguments.plot:
        from bench.budget_plot import draw

        draw(results, arguments.plot)


if __name__ == "__main__":
    main()
