"""How close `tritonpy analyze` comes to a known optimum, on a machine with other work.

    python -m bench.analyzer --runs 10 --minutes 3

A Python model sleeps by a law of cost: `(fixed + row * rows) * (1 + penalty * (instances - 1))`.
Another process uses one core in square waves. The law gives the true rate within the latency limit
of every configuration, by a long simulation that the analyzer does not see. Each run has another
seed. The table shows the true rate of the found configuration as a share of the best one.
"""

from __future__ import annotations

import argparse
import heapq
import io
import json
import math
import multiprocessing
import random
import re
import subprocess
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, product
from pathlib import Path
from typing import Any

from bench import processes
from tritonpy_analyzer import AnalysisOptions, Study, analyze
from tritonpy_analyzer.config_edits import write_settings

FIXED_S, ROW_S, PENALTY = 0.020, 0.002, 0.5
LIMIT_S, SHARE = 0.200, 0.05
BATCHES, INSTANCES = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 5, 6)
DELAYS_US = (0, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
WAVE_S = 5.0
REQUESTS = 30_000
MODEL = f"""
import os, pathlib, tempfile, time
import triton_python_backend_utils as pb_utils

# The law depends on the instances that exist, which may change without a reload.
FOLDER = pathlib.Path(tempfile.gettempdir(), f"law-{{os.getppid()}}")

class TritonPythonModel:
    def initialize(self, args):
        FOLDER.mkdir(exist_ok=True)
        self.mark = FOLDER / str(os.getpid())
        self.mark.touch()

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(each, "IN").as_numpy() for each in requests]
        rows = sum(len(each) for each in inputs)
        slowdown = 1 + {PENALTY} * (len(os.listdir(FOLDER)) - 1)
        time.sleep(({FIXED_S} + {ROW_S} * rows) * slowdown)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each)]) for each in inputs]

    def finalize(self):
        self.mark.unlink()
"""
CONFIG = """
backend: "python"
max_batch_size: 4
input [{ name: "IN" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [4] }]
dynamic_batching { }
instance_group [{ count: 1 kind: KIND_CPU }]
"""


def exceeding_share(rate: float, batch: int, instances: int, delay_s: float) -> float:
    """Return the share of Poisson arrivals that wait longer than the limit, by the law."""
    rng = random.Random(11)
    arrivals = list(accumulate(rng.expovariate(rate) for _ in range(REQUESTS)))
    free, first, late = [0.0] * instances, 0, 0
    while first < REQUESTS:
        start = max(free[0], arrivals[first])
        if delay_s and batch > 1:
            full = arrivals[first + batch - 1] if first + batch <= REQUESTS else math.inf
            start = max(start, min(full, arrivals[first] + delay_s))
        last = bisect_right(arrivals, start, first + 1, min(first + batch, REQUESTS))
        rows = last - first
        end = start + (FIXED_S + ROW_S * rows) * (1 + PENALTY * (instances - 1))
        heapq.heapreplace(free, end)
        late += bisect_left(arrivals, end - LIMIT_S, first, last) - first
        first = last
    return late / REQUESTS


def true_rate(batch: int, instances: int, delay_us: int) -> float:
    """Return the highest rate within the limit, by the law."""
    low, high = 1.0, 5_000.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        share = exceeding_share(middle, batch, instances, delay_us / 1e6)
        low, high = (middle, high) if share <= SHARE else (low, middle)
    return low


def rate_of(settings: Mapping[str, Any]) -> float:
    """Return the true rate of a configuration that was found."""
    batch = int(settings["max_batch_size"]) if settings["dynamic_batching"] else 1
    delay_us = int(settings["max_queue_delay_microseconds"])
    return true_rate(batch, int(settings["instance_group.count"]), delay_us)


@contextmanager
def square_wave(period_s: float) -> Iterator[None]:
    """Use one core for half of the time, in a process of its own."""
    process = multiprocessing.Process(target=_burn, args=(period_s,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _burn(period_s: float) -> None:
    while True:
        until = time.monotonic() + period_s
        while time.monotonic() < until:
            pass
        time.sleep(period_s)


def run(folder: Path, minutes: float, seed: int) -> Study:
    """Analyze the model once."""
    return analyze(
        AnalysisOptions(
            models=("law",),
            repository=str(folder / "models"),
            slo=(f"p95<{LIMIT_S * 1e3:g}ms",),
            minutes=minutes,
            seed=seed,
            max_batch_size=BATCHES[-1],
            max_instances=INSTANCES[-1],
            folder=str(folder / f"study_{seed}"),
        )
    )


def independent_p95_ms(binary: Path, folder: Path, study: Study) -> float | None:
    """Write the found configuration, serve it, and return perf_analyzer's p95 at the found rate."""
    best = study.recommended
    if best is None or best.checked_rate is None:
        return None
    write_settings(study, folder / "models", None, io.StringIO())
    with processes.tritonpy(folder / "models") as server:
        text = subprocess.run(
            [
                str(binary), "-m", "law", "-i", "grpc", "-u", f"127.0.0.1:{server.grpc}",
                f"--request-rate-range={best.checked_rate:.1f}", "--request-distribution=poisson",
                "--percentile=95", "--measurement-interval=5000", "--max-trials=3",
                "--stability-percentage=999",
            ],
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout  # fmt: skip
    match = re.search(r"p95 latency: (\d+) usec", text)
    return int(match[1]) / 1e3 if match is not None else None


def main() -> None:
    """Print a line per run, then the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--quiet-machine", action="store_true", help="without the square wave")
    parser.add_argument("--perf-analyzer", type=Path, help="check each result with it")
    parser.add_argument("--json", type=Path, help="write the runs as JSON")
    arguments = parser.parse_args()
    best = max(true_rate(*each) for each in product(BATCHES, INSTANCES, DELAYS_US))
    print(f"best {best:.0f}/s by the law, present {true_rate(4, 1, 0):.0f}/s", flush=True)
    rows = []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            model = folder / "models" / "law"
            (model / "1").mkdir(parents=True)
            (model / "1" / "model.py").write_text(MODEL, encoding="utf-8")
            (model / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
            if arguments.quiet_machine:
                study = run(folder, arguments.minutes, seed)
            else:
                with square_wave(WAVE_S):
                    study = run(folder, arguments.minutes, seed)
            checked_ms = (
                independent_p95_ms(arguments.perf_analyzer, folder, study)
                if arguments.perf_analyzer is not None
                else None
            )
        found = study.best
        share = 0.0
        if found is not None:
            share = rate_of({name: value for _, name, value in found.settings}) / best
        row = {
            "seed": seed,
            "share": round(share, 3),
            "status": study.status,
            "found": found.text if found is not None else "",
            "checked": found.checked_rate if found is not None else None,
            "perf_analyzer_p95_ms": checked_ms,
            "seconds": round(study.seconds, 1),
            "windows": study.windows,
            "dropped": study.dropped.count,
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    within = sum(row["share"] >= 0.95 for row in rows)
    print(f"{within} of {len(rows)} runs found a configuration within 5 % of the best")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
