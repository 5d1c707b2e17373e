"""NVIDIA's Model Analyzer and `tritonpy analyze` on the model of `bench.analyzer`, side by side.

    python -m bench.model_analyzer --model-analyzer DIR --perf-analyzer FILE

DIR is an environment with the package triton-model-analyzer. Both search the configuration with the
most requests per second within the latency limit, while another process uses one core in square
waves. Model Analyzer drives our server over gRPC, unchanged, with its quick search.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from bench import processes
from bench.analyzer import (
    BATCHES,
    CONFIG,
    DELAYS_US,
    INSTANCES,
    LIMIT_S,
    MODEL,
    WAVE_S,
    rate_of,
    run,
    square_wave,
    true_rate,
)
from tritonpy_testing import free_port

LIMIT_MS = round(LIMIT_S * 1e3)


@contextmanager
def repository() -> Iterator[Path]:
    """A folder with the repository `models`, which has the model `law`."""
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "models" / "law"
        (model / "1").mkdir(parents=True)
        (model / "1" / "model.py").write_text(MODEL, encoding="utf-8")
        (model / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
        yield Path(name)


def run_model_analyzer(binary: Path, perf_analyzer: Path, folder: Path) -> dict[str, Any]:
    """Run Model Analyzer and return its best configuration, with the true rate of it."""
    metrics = free_port()
    flags = ("--model-control-mode=explicit", "--load-model=law", f"--metrics-port={metrics}")
    with processes.tritonpy(folder / "models", *flags) as server:
        settings = {
            "model_repository": str(folder / "models"),
            "output_model_repository_path": str(folder / "output"),
            "override_output_model_repository": True,
            "checkpoint_directory": str(folder / "checkpoints"),
            "export_path": str(folder / "export"),
            "triton_launch_mode": "remote",
            "client_protocol": "grpc",
            "triton_http_endpoint": f"127.0.0.1:{server.http}",
            "triton_grpc_endpoint": f"127.0.0.1:{server.grpc}",
            "triton_metrics_url": f"http://127.0.0.1:{metrics}/metrics",
            "perf_analyzer_path": str(perf_analyzer.resolve()),
            "run_config_search_mode": "quick",
            "run_config_search_max_model_batch_size": BATCHES[-1],
            "run_config_search_max_instance_count": INSTANCES[-1],
            "objectives": {"perf_throughput": 10},
            "constraints": {"perf_latency_p99": {"max": LIMIT_MS}},
            "profile_models": {"law": {"cpu_only": True}},
            "gpus": [],
        }
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        started = time.monotonic()
        done = subprocess.run(
            [str(binary), "profile", "-f", str(folder / "settings.yaml")],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = time.monotonic() - started
    if done.returncode != 0:
        raise RuntimeError(f"Model Analyzer failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return best_of_export(folder / "export") | {"seconds": round(seconds, 1)}


def best_of_export(folder: Path) -> dict[str, Any]:
    """Return the configuration with the highest throughput among those within the limit."""
    [path] = folder.rglob("metrics-model-inference.csv")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    within = [row for row in rows if row["Satisfies Constraints"] == "Yes"] or rows
    best = max(within, key=lambda row: float(row["Throughput (infer/sec)"]))
    batch = int(best.get("Max Batch Size") or 4)
    instances = int(best["Instance Group"].partition(":")[0] or 1)
    return {
        "configuration": best["Model Config Path"],
        "found": f"batch {batch}, {instances} instances",
        "measured": float(best["Throughput (infer/sec)"]),
        "true_rate": true_rate(batch, instances, 0),
        "measurements": len(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model-analyzer", type=Path, required=True, help="its environment")
    parser.add_argument("--perf-analyzer", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=3.0, help="time of tritonpy analyze")
    parser.add_argument("--seed", type=int, default=11)
    arguments = parser.parse_args()
    best = max(true_rate(*each) for each in product(BATCHES, INSTANCES, DELAYS_US))
    print(f"best {best:.0f}/s by the law, present {true_rate(4, 1, 0):.0f}/s", flush=True)
    with repository() as folder, square_wave(WAVE_S):
        binary = arguments.model_analyzer / "bin" / "model-analyzer"
        theirs = run_model_analyzer(binary, arguments.perf_analyzer, folder)
    theirs["share"] = round(theirs["true_rate"] / best, 3)
    print("Model Analyzer:", json.dumps(theirs), flush=True)
    with repository() as folder, square_wave(WAVE_S):
        study = run(folder, arguments.minutes, arguments.seed)
    found = study.best
    if found is None:
        print("tritonpy analyze found nothing:", study.status)
        return
    share = rate_of({name: value for _, name, value in found.settings}) / best
    ours = {
        "found": found.text,
        "measured": found.checked_rate,
        "share": round(share, 3),
        "windows": study.windows,
        "seconds": round(study.seconds, 1),
    }
    print("tritonpy analyze:", json.dumps(ours), flush=True)


if __name__ == "__main__":
    main()
