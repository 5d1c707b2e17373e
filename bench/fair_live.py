"""Fair queueing of two tenants with weights 4 and 1 in a server: `python -m bench.fair_live`.

The model runs in ONNX Runtime in this process. Both tenants have the same number of clients, each
with one request in flight.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.record_costs import wide
from bench.slo_live import CONFIG
from tritonpy import InferRequest, InferResponse, Tensor
from tritonpy.frontend import Sink
from tritonpy_testing import RunningServer, running_server

HEADER, WEIGHTS = "x-tenant", {"heavy": 4.0, "light": 1.0}
SETTINGS = ((1, 4), (1, 32), (8, 4), (8, 16), (8, 32), (8, 64))
"""The maximum batch size, and the number of clients of each tenant."""
NO_PORTS = {"http": False, "grpc": False, "metrics": False}


class Clients(Sink):
    """Clients with the same `headers`; each sends its next request when it has a response."""

    def __init__(
        self, server: RunningServer, model: str, count: int, headers: Mapping[str, str]
    ) -> None:
        self.latencies_ns: list[int] = []
        self._server, self._model, self._headers = server, model, headers
        self._open = threading.Semaphore(0)
        self._over = False
        self._data = np.ones((1, 2048), np.float32)
        for _ in range(count):
            self._send()
        self._count = count

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.latencies_ns.append(time.monotonic_ns() - request.tag)
        if self._over or response.error is not None:
            self._open.release()
        else:
            self._send()

    def stop(self, wait: bool = True) -> None:
        """Stop sending; if `wait`, wait for the last responses."""
        self._over = True
        if wait:
            for _ in range(self._count):
                self._open.acquire()

    def _send(self) -> None:
        tensor = Tensor.from_numpy("IN", self._data)
        request = InferRequest(
            self._model, {"IN": tensor}, self, tag=time.monotonic_ns(), headers=self._headers
        )
        self._server.engine.infer(request)


def measure(server: RunningServer, model: str, clients: int, seconds: float) -> tuple[float, float]:
    """Return the ratio of the tenants' responses while both wait, and that of all responses."""
    loads = [Clients(server, model, clients, {HEADER: tenant}) for tenant in WEIGHTS]
    time.sleep(seconds / 4)
    before = [len(load.latencies_ns) for load in loads]
    time.sleep(3 * seconds / 4)
    heavy, light = (
        len(load.latencies_ns) - count for load, count in zip(loads, before, strict=True)
    )
    for load in loads:
        load.stop(wait=False)
    for load in loads:
        load.stop()
    return heavy / max(light, 1), len(loads[0].latencies_ns) / max(len(loads[1].latencies_ns), 1)


def main() -> None:
    """Measure all settings and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    _, graph, _ = wide(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        for size in {size for size, _ in SETTINGS}:
            model = Path(folder, f"wide_{size}")
            (model / "1").mkdir(parents=True)
            (model / "1" / "model.onnx").write_bytes(graph.SerializeToString())
            text = CONFIG.replace("max_batch_size: 64", f"max_batch_size: {size}")
            filled = text.format(backend="onnxruntime", batching="dynamic_batching { }", width=2048)
            (model / "config.pbtxt").write_text(filled)
        sharing = {
            "fair": {
                "header": HEADER,
                "tenants": {name: {"weight": each} for name, each in WEIGHTS.items()},
            }
        }
        with running_server(
            {"repositories": [{"url": folder}], "frontends": NO_PORTS, "sharing": sharing}
        ) as server:
            for size, clients in SETTINGS:
                waiting, overall = measure(server, f"wide_{size}", clients, arguments.seconds)
                print(
                    (
                        f"batches of {size}, {clients:2} clients each   while both wait "
                        f"{waiting:4.2f}   in all {overall:4.2f}"
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
