"""Offline batches against a loop around ONNX Runtime: `bench.offline`.

Run with `python -m bench.offline`. Both read the same Parquet files, run the same model with the
same batch size, and write Parquet. They alternate, in processes of their own; the time of the first
batch and of imports counts for neither. The goal is 0.9 of the loop's rate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.real_model_files import MODELS

GOAL = 0.9
ROWS = {"resnet50": 192, "perceptron": 1_600_000, "minilm": 2_000}
BATCH = {"resnet50": 8, "perceptron": 64, "minilm": 16}


def main() -> int:
    """Print a line per model; return 1 if one fell short."""
    if sys.argv[1:2] in (["loop"], ["job"]):
        work = _loop if sys.argv[1] == "loop" else _job
        print(json.dumps(work(*sys.argv[2:])))
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", choices=ROWS, action="append", help="only this one")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    print("| model | batch | loop rows/s | job rows/s | ratio (range) |\n|---|---|---|---|---|")
    short = False
    for name in arguments.model or ROWS:
        ratios, loops, jobs = _pairs(name, arguments.pairs)
        short |= median(ratios) < GOAL
        print(
            f"| {name} | {BATCH[name]} | {median(loops):,.0f} | {median(jobs):,.0f} "
            f"| {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
            flush=True,
        )
    return 1 if short else 0


def _pairs(name: str, pairs: int) -> tuple[list[float], list[float], list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write_files(name, root)
        loops, jobs = [], []
        for number in range(pairs):
            order = ("loop", "job") if number % 2 else ("job", "loop")
            for kind in order:
                rate = _measure(kind, name, root, root / f"{kind}{number}")
                (loops if kind == "loop" else jobs).append(rate)
        return [job / loop for job, loop in zip(jobs, loops, strict=True)], loops, jobs


def _write_files(name: str, root: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    model = MODELS[name]
    (root / "models" / name / "1").mkdir(parents=True)
    model.write(root / "models" / name / "1" / "model.onnx")
    config = f'backend: "onnxruntime"\nmax_batch_size: {BATCH[name]}\n'
    (root / "models" / name / "config.pbtxt").write_text(config)
    (root / "in").mkdir()
    rows = ROWS[name]
    example = model.row()[0]
    data = np.repeat(example[None], min(rows, 4096), 0)
    column = pa.array(data.reshape(-1))
    for dim in reversed(example.shape):
        column = pa.FixedSizeListArray.from_arrays(column, dim)
    for number in range(4):
        table = pa.table({model.name: column})
        parts = [table] * max(rows // 4 // len(data), 1)
        table = pa.concat_tables(parts).slice(0, rows // 4)
        pq.write_table(table, root / "in" / f"{number}.parquet", row_group_size=4096)


def _measure(kind: str, name: str, root: Path, output: Path) -> float:
    command = [sys.executable, "-m", "bench.offline", kind, name, str(root), str(output)]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return float(json.loads(text.splitlines()[-1]))


def _loop(name: str, root: str, output: str) -> float:
    import onnxruntime
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(root, "models", name, "1", "model.onnx")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    tensor = session.get_inputs()[0].name
    shape = [dim if isinstance(dim, int) else -1 for dim in session.get_inputs()[0].shape][1:]
    Path(output).mkdir()
    rows, started = 0, 0.0
    for source in sorted(Path(root, "in").iterdir()):
        results = []
        for batch in pq.ParquetFile(source).iter_batches(BATCH[name]):
            column: Any = batch.column(0)
            while pa.types.is_fixed_size_list(column.type):
                column = column.flatten()
            (result,) = session.run(None, {tensor: column.to_numpy().reshape(-1, *shape)})[:1]
            if not started:
                started = time.perf_counter()
                rows = -len(result)
            rows += len(result)
            results.append(result)
        joined = np.concatenate(results)
        values: Any = pa.array(joined.reshape(-1))
        values = pa.FixedSizeListArray.from_arrays(values, joined.size // len(joined))
        table = pa.table({"output": values})
        pq.write_table(table, Path(output, source.name), compression="zstd")
    return rows / (time.perf_counter() - started)


def _job(name: str, root: str, output: str) -> float:
    from tritonpy_batch import BatchOptions, run_batch

    options = BatchOptions(
        model=name, inputs=(f"{root}/in",), output=output, repository=f"{root}/models"
    )
    return run_batch(options).progress.rate


if __name__ == "__main__":
    sys.exit(main())
