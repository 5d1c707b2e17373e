"""Cost of thousands of small models: `python -m bench.many_models [--models 5000]`.

Measures time and CPU time until every model serves, memory and threads then and after requests to
some models, the time of one scrape of `/metrics`, and the time from SIGTERM to the exit with its
status.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import models, payloads, processes
from tritonpy_testing import free_port

MAX_REQUESTED = 500  # models that get a request each
SCRAPES = 7
START_S, STOP_S = 600, 120


@dataclass(frozen=True)
class Figures:
    """Measurements of one server run; `scrape_s` is the median of several scrapes."""

    models: int
    start_s: float
    start_cpu_s: float
    resident_bytes: int
    threads: int
    threads_after_requests: int
    scrape_s: float
    scrape_bytes: int
    stop_s: float
    exit_status: int

    def table(self) -> str:
        """Return the figures as a table."""
        rows = {
            "models": f"{self.models:,}",
            "start": f"{self.start_s:.1f} s, {self.start_cpu_s:.1f} s of CPU",
            "resident memory": f"{self.resident_bytes / 2**20:,.0f} MiB",
            "threads": f"{self.threads:,}",
            (
                f"threads after requests to {min(MAX_REQUESTED, self.models)} models"
            ): f"{self.threads_after_requests:,}",
            "a scrape of /metrics": (
                f"{self.scrape_s * 1e3:.0f} ms, {self.scrape_bytes / 2**20:.1f} MiB"
            ),
            "SIGTERM to exit": f"{self.stop_s:.1f} s, exit status {self.exit_status}",
        }
        return "\n".join(
            ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
        )


def main() -> int:
    """Measure once; return 1 if the server's exit status is not 0."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=int, default=5000)
    figures = measure(parser.parse_args().models)
    print(figures.table())
    return 0 if figures.exit_status == 0 else 1


def _thread_flags(small_model_threads: int | None) -> list[str]:
    if small_model_threads is None:
        return []
    return [f"--backend-config=onnxruntime,small-model-threads={small_model_threads}"]


def measure(count: int, small_model_threads: int | None = None) -> Figures:
    """Serve `count` models and measure; `small_model_threads` is a backend option."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        models.write_many(Path(folder), count)
        http, metrics = free_port(), free_port()
        command = [
            sys.executable, "-m", "tritonpy", "serve", f"--model-repository={folder}",
            f"--http-port={http}",
            f"--grpc-port={free_port()}", f"--metrics-port={metrics}",
            *_thread_flags(small_model_threads),
        ]  # fmt: skip
        began = time.perf_counter()
        server = subprocess.Popen(
            command, cwd=processes.ROOT, start_new_session=True, stdout=output, stderr=output
        )
        try:
            processes.wait_http(http, START_S)
            start_s = time.perf_counter() - began
            process = psutil.Process(server.pid)
            times, resident, threads = (
                process.cpu_times(),
                process.memory_info().rss,
                process.num_threads(),
            )
            for number in range(min(MAX_REQUESTED, count)):
                send_request(http, f"add_sub_{number}")
            threads_after = process.num_threads()
            scrapes = sorted(scrape(metrics) for _ in range(SCRAPES))
            began = time.perf_counter()
            server.send_signal(signal.SIGTERM)
            status = server.wait(STOP_S)
            stop_s = time.perf_counter() - began
        finally:
            processes.end(server)
    return Figures(
        count, start_s, times.user + times.system, resident, threads, threads_after,
        *scrapes[SCRAPES // 2], stop_s, status
    )  # fmt: skip


def send_request(port: int, model: str) -> None:
    """Send one request. Raises HTTPError if it fails."""
    payload = payloads.add_sub(model)
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(payload.header_length),
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/{model}/infer", payload.body, headers
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        response.read()


def scrape(port: int) -> tuple[float, int]:
    """Return the seconds and bytes of one scrape of the metrics."""
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        size = len(response.read())
    return time.perf_counter() - began, size


if __name__ == "__main__":
    sys.exit(main())
