"""Comparison of the batch policy "slo" with fixed delays in a server: `python -m bench.slo_live`.

Three models; clients in a separate process, each with one HTTP request in flight; all settings
alternate for several rounds. `bench.slo_simulation` compares them in simulated time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import multiprocessing.connection
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from bench.record_costs import wide
from tritonpy_testing import RunningServer, running_server

TARGET_MS = 60
SETTINGS = {
    "no delay": "dynamic_batching { }",
    "delay 2 ms": "dynamic_batching { max_queue_delay_microseconds: 2000 }",
    "slo": "dynamic_batching { } "
    + " ".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in {"batch_policy": "slo", "slo_ms": TARGET_MS}.items()
    ),
}
CONFIG = """
backend: "{backend}" max_batch_size: 64 {batching} instance_group {{ count: 1 kind: KIND_CPU }}
input {{ name: "IN" data_type: TYPE_FP32 dims: {width} }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: {width} }}
"""
SLEEPING = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep({fixed_ms} / 1e3 + {row_ms} / 1e3 * len(requests))
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each.inputs()[0].as_numpy())])
            for each in requests
        ]
"""
SLEEPS = {"call 5 ms, row 0.1 ms": (5.0, 0.1), "call 1 ms, row 0.5 ms": (1.0, 0.5)}
WIDE, WIDTHS = "wide", {"wide": 2048}
WARM = 0.4  # share of a run's time


@dataclass
class SettingResult:
    """Runs of one setting: requests per second, p99 in ms, rows per batch."""

    rates: list[float] = field(default_factory=list)
    p99s_ms: list[float] = field(default_factory=list)
    batches: list[float] = field(default_factory=list)


def measure(
    server: RunningServer,
    model: str,
    width: int,
    clients: int,
    seconds: float,
    result: SettingResult,
) -> None:
    """Add one run to `result`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    port = int(server.http.rpartition(":")[2])
    process = context.Process(target=_load, args=(port, model, width, clients, seconds, theirs))
    (before,) = server.engine.statistics(model)
    process.start()
    latencies_s: list[float] = ours.recv()
    process.join()
    (after,) = server.engine.statistics(model)
    rows = after.inference_count - before.inference_count
    result.rates.append(len(latencies_s) / (seconds * (1 - WARM)))
    result.p99s_ms.append(float(np.quantile(latencies_s, 0.99)) * 1e3 if latencies_s else 0.0)
    result.batches.append(rows / max(after.execution_count - before.execution_count, 1))


def _load(
    port: int,
    model: str,
    width: int,
    clients: int,
    seconds: float,
    results: multiprocessing.connection.Connection,
) -> None:
    results.send(asyncio.run(_run_clients(port, _message(model, width), clients, seconds)))


async def _run_clients(port: int, message: bytes, clients: int, seconds: float) -> list[float]:
    latencies_s: list[float] = []
    begin = time.monotonic()
    first, end = begin + WARM * seconds, begin + seconds

    async def run_client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (sent := time.monotonic()) < end:
            writer.write(message)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            now = time.monotonic()
            if sent >= first and now <= end:
                latencies_s.append(now - sent)
        writer.close()

    await asyncio.gather(*(run_client() for _ in range(clients)))
    return latencies_s


def _message(model: str, width: int) -> bytes:
    data = np.ones((1, width), np.float32).tobytes()
    tensor = {
        "name": "IN",
        "datatype": "FP32",
        "shape": [1, width],
        "parameters": {"binary_data_size": len(data)},
    }
    head = json.dumps(
        {"inputs": [tensor], "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]}
    ).encode()
    lines = (
        f"POST /v2/models/{model}/infer HTTP/1.1", "Host: localhost",
        (
            "Inference-Header-Content-Length: "
            f"{len(head)}"
        ), f"Content-Length: {len(head) + len(data)}", "", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode() + head + data


def write_models(repository: Path) -> dict[str, Mapping[str, str]]:
    """Write each model with each setting; return the folder names by model and setting."""
    _, graph, _ = wide(np.random.default_rng(0))
    folders: dict[str, dict[str, str]] = {}
    for number, model in enumerate((WIDE, *SLEEPS)):
        for index, (setting, batching) in enumerate(SETTINGS.items()):
            folder = repository / f"m{number}_{index}"
            (folder / "1").mkdir(parents=True)
            if model == WIDE:
                (folder / "1" / "model.onnx").write_bytes(graph.SerializeToString())
            else:
                fixed_ms, row_ms = SLEEPS[model]
                (folder / "1" / "model.py").write_text(
                    SLEEPING.format(fixed_ms=fixed_ms, row_ms=row_ms)
                )
            backend, width = "onnxruntime" if model == WIDE else "python", WIDTHS.get(model, 16)
            (folder / "config.pbtxt").write_text(
                CONFIG.format(backend=backend, batching=batching, width=width)
            )
            folders.setdefault(model, {})[setting] = folder.name
    return folders


def main() -> None:
    """Measure all settings and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = write_models(Path(folder))
        frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
        with running_server({"repositories": [{"url": folder}], "frontends": frontends}) as server:
            for model, folders in models.items():
                for clients in arguments.clients:
                    result = {setting: SettingResult() for setting in folders}
                    for _ in range(arguments.rounds):
                        for setting, name in folders.items():
                            width = WIDTHS.get(model, 16)
                            measure(
                                server, name, width, clients, arguments.seconds, result[setting]
                            )
                    _print(model, clients, result)


def _print(model: str, clients: int, result: Mapping[str, SettingResult]) -> None:
    plain = result["no delay"].rates
    for setting, each in result.items():
        ratio = median(
            rate / max(plain_rate, 1e-9) for rate, plain_rate in zip(each.rates, plain, strict=True)
        )
        print(
            f"{model:22} {clients:3} clients   {setting:11} {median(each.rates):8.0f}/s   "
            f"{ratio:5.2f} of no delay"
            f"   p99 {median(each.p99s_ms):6.1f} ms   {median(each.batches):5.1f} rows a batch",
            flush=True,
        )


if __name__ == "__main__":
    main()
