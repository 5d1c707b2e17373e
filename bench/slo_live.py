"""Runs the batch policy "slo" in a server beside hand-tuned delays: `python -m bench.slo_live`. For a look; the judge is `bench.slo_simulation`.

One model in ONNX Runtime, whose weights have to be read for one row as for many, inside this process; clients that each have one request open.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from bench.record_costs import wide
from tritonpy import InferRequest, InferResponse, Sink, Tensor
from tritonpy.testing import RunningServer, running_server

TARGET_MS = 60.0
DELAYS_US = (0, 500, 2000, 5000)
NO_PORTS = {"http": False, "grpc": False, "metrics": False}
CONFIG = """
backend: "onnxruntime" max_batch_size: 64 {batching}
input {{ name: "IN" data_type: TYPE_FP32 dims: 2048 }} output {{ name: "OUT" data_type: TYPE_FP32 dims: 2048 }}
instance_group {{ count: 1 kind: KIND_CPU }}
"""
SLO = """
dynamic_batching {{ }} parameters {{ key: "batch_policy" value {{ string_value: "slo" }} }}
parameters {{ key: "slo_ms" value {{ string_value: "{}" }} }}
"""


class Clients(Sink):
    """Each sends its next request when it has its answer; all of them with the same `headers`."""

    def __init__(self, server: RunningServer, model: str, count: int, headers: Mapping[str, str] | None = None) -> None:
        self.taken_ns: list[int] = []
        self._server, self._model, self._headers = server, model, headers
        self._open = threading.Semaphore(0)
        self._over = False
        self._data = np.ones((1, 2048), np.float32)
        for _ in range(count):
            self._send()
        self._count = count

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.taken_ns.append(time.monotonic_ns() - request.tag)
        if self._over or response.error is not None:
            self._open.release()
        else:
            self._send()

    def stop(self, wait: bool = True) -> None:
        """Send no more, and wait for the last answers."""
        self._over = True
        if wait:
            for _ in range(self._count):
                self._open.acquire()

    def _send(self) -> None:
        tensor = Tensor.from_numpy("IN", self._data)
        request = InferRequest(self._model, {"IN": tensor}, self, tag=time.monotonic_ns(), headers=self._headers)
        self._server.engine.infer(request)


def measure(server: RunningServer, model: str, clients: int, seconds: float) -> tuple[float, float]:
    """Return requests per second and p99 in ms, of the second half of the time."""
    load = Clients(server, model, clients)
    time.sleep(seconds / 2)
    first, begin = len(load.taken_ns), time.monotonic()
    time.sleep(seconds / 2)
    taken, passed = load.taken_ns[first:], time.monotonic() - begin
    load.stop()
    return len(taken) / passed, float(np.quantile(taken, 0.99)) / 1e6 if taken else 0.0


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = dict(_models(Path(folder)))
        with running_server({"repositories": [{"url": folder}], "frontends": NO_PORTS}) as server:
            for model, setting in models.items():
                throughput, p99_ms = measure(server, model, arguments.clients, arguments.seconds)
                print(f"{setting:20} {throughput:8.0f}/s   p99 {p99_ms:6.1f} ms", flush=True)


def _models(repository: Path) -> Iterator[tuple[str, str]]:
    _, graph, _ = wide(np.random.default_rng(0))
    settings = {
        f"delay {delay} us": f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}" for delay in DELAYS_US
    }
    settings[f"slo {TARGET_MS:g} ms"] = SLO.format(TARGET_MS)
    for number, (setting, batching) in enumerate(settings.items()):
        folder = repository / f"wide_{number}"
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.onnx").write_bytes(graph.SerializeToString())
        (folder / "config.pbtxt").write_text(CONFIG.format(batching=batching))
        yield folder.name, setting


if __name__ == "__main__":
    main()
