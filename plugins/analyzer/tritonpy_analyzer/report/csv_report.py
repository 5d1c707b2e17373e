"""The result as CSV, with the columns of Model Analyzer's metrics-model-inference.csv."""

from __future__ import annotations

import csv
from pathlib import Path

from tritonpy_analyzer.space import BATCH, INSTANCES
from tritonpy_analyzer.study import CandidateResult, Study

COLUMNS = (
    "Model",
    "Batch",
    "Concurrency",
    "Model Config Path",
    "Instance Group",
    "Max Batch Size",
    "Satisfies Constraints",
    "Throughput (infer/sec)",
    "p99 Latency (ms)",
    "CPU Memory (MB)",
    "GPU Memory (MB)",
)


def write_csv(path: Path, study: Study) -> None:
    """Write one line per measured configuration. Raises OSError."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number, result in enumerate(study.candidates):
            if result.windows:
                writer.writerow(_row(study, number, result))


def _row(study: Study, number: int, result: CandidateResult) -> list[object]:
    model = study.models[0]
    values = {name: value for owner, name, value in result.settings if owner == model}
    p99 = result.latencies.get("p99")
    name = f"{model}_config_default" if result.status == "present" else f"{model}_config_{number}"
    return [
        model,
        1,
        study.load,
        name,
        f"{values.get(INSTANCES, 1)}:CPU" if not result.memory_gpu else values.get(INSTANCES, 1),
        values.get(BATCH, 0),
        "No" if result.reason.startswith("violates") else "Yes",
        round(result.rate.value, 1) if result.rate is not None else "",
        round(p99.value * 1e3, 3) if p99 is not None else "",
        round(result.memory_cpu / 1e6, 1),
        round(result.memory_gpu / 1e6, 1),
    ]
