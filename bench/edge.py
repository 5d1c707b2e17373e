"""Disk space, memory and start time of a minimal server: `python -m bench.edge [BACKEND …]`.

For each backend, builds wheels of the core and the backend, installs them into a new environment,
and sums up file sizes by distribution. Then it serves the digits of `examples/models` and measures
the time until ready and the resident memory, when ready and after 1,000 requests.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import processes
from bench.processes import ROOT

# backend -> its package, and its lines of the digits' configuration
BACKENDS = {
    "onnxruntime": ("plugins/backend_onnx", 'backend: "onnxruntime"'),
    "openvino": (
        "plugins/backend_openvino",
        'backend: "openvino" default_model_filename: "model.onnx"',
    ),
}
CONFIG = """
max_batch_size: 8
input [{ name: "image" data_type: TYPE_FP32 dims: [64] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [10] }]
"""
INSTALLERS = {"pip", "setuptools", "wheel"}
REQUESTS, MAX_ROWS = 1000, 12
MIB = 1 << 20


@dataclass(frozen=True)
class Figures:
    """Measurements of one environment: sizes by distribution in bytes, start time, and memory."""

    sizes: dict[str, int]
    ready_s: float
    ready_bytes: int
    used_bytes: int


def main() -> int:
    """Measure each backend, and print a table and the largest distributions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "backends", nargs="*", metavar="BACKEND", help=f"of {', '.join(BACKENDS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of server starts")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    arguments = parser.parse_args()
    figures = {}
    for backend in arguments.backends or BACKENDS:
        with tempfile.TemporaryDirectory() as folder:
            python = install(Path(folder), BACKENDS[backend][0])
            figures[backend] = measure(
                python, repository(Path(folder), backend), arguments.rounds, arguments.requests
            )
    print(*table(figures), "", sep="\n")
    for backend, each in figures.items():
        print(*parts(backend, each.sizes), "", sep="\n")
    return 0


def install(folder: Path, package: str) -> Path:
    """Make an environment with the core and `package` from wheels; return its interpreter."""
    wheels = folder / "wheels"
    core = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text(encoding="utf-8"))
    siblings = core["tool"]["hatch"]["metadata"]["hooks"]["custom"]["siblings"]
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    pip = [str(python), "-m", "pip", "-q", "--disable-pip-version-check"]
    environment = {**os.environ, "TRITONPY_PLAIN_DEPENDENCIES": "1"}
    sources = [f"./{source}" for source in ("core", *siblings.values(), package)]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "-w", str(wheels), *sources],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    subprocess.run([*pip, "install", *map(str, wheels.glob("*.whl"))], check=True)
    return python


def repository(folder: Path, backend: str) -> Path:
    """Write a repository with the digits model for `backend`."""
    path = folder / "models"
    shutil.copytree(ROOT / "examples" / "models" / "digits" / "1", path / "digits" / "1")
    (path / "digits" / "config.pbtxt").write_text(BACKENDS[backend][1] + CONFIG)
    return path


def measure(python: Path, models: Path, rounds: int, requests: int) -> Figures:
    """Start the server `rounds` times; memory is that of the last run."""
    sizes = dict(_sizes(python))
    digit = (ROOT / "examples" / "digit.json").read_bytes()
    seconds: list[float] = []
    ready = used = 0
    for _ in range(rounds):
        begin = time.perf_counter()
        with processes.tritonpy(models, python=str(python)) as server:
            seconds.append(time.perf_counter() - begin)
            ready = server.resident_bytes()
            for _ in range(requests):
                url = f"http://127.0.0.1:{server.http}/v2/models/digits/infer"
                with urllib.request.urlopen(
                    urllib.request.Request(url, digit, method="POST")
                ) as response:
                    response.read()
            used = server.resident_bytes()
    return Figures(sizes, median(seconds), ready, used)


def table(figures: dict[str, Figures]) -> Iterator[str]:
    """Yield a table row per backend."""
    yield (
        "| core and | on disk | of that the framework | ready after | resident when ready | "
        f"after {REQUESTS:,} requests |"
    )
    yield "|---|---|---|---|---|---|"
    for backend, each in figures.items():
        yield (
            f"| {backend} | {sum(each.sizes.values()) / MIB:,.0f} MiB | "
            f"{each.sizes.get(backend, 0) / MIB:,.0f} MiB | {each.ready_s:.1f} s "
            f"| {each.ready_bytes / MIB:,.0f} MiB | {each.used_bytes / MIB:,.0f} MiB |"
        )


def parts(backend: str, sizes: dict[str, int]) -> Iterator[str]:
    """Yield the largest distributions, then the sum of the others."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    yield f"{backend}: {len(sizes)} distributions"
    for name, size in ordered[:MAX_ROWS]:
        yield f"{size / MIB:8.1f} MiB  {name}"
    yield (
        f"{sum(size for _, size in ordered[MAX_ROWS:]) / MIB:8.1f} MiB  "
        f"{len(ordered[MAX_ROWS:])} others"
    )


def _sizes(python: Path) -> Iterator[tuple[str, int]]:
    """Yield each distribution and the bytes of its installed files, including bytecode."""
    [site] = (python.parent.parent / "lib").glob("python*/site-packages")
    for record in sorted(site.glob("*.dist-info/RECORD")):
        name = record.parent.name.partition("-")[0].lower()
        if name not in INSTALLERS:
            with record.open(newline="") as lines:
                files = [site / row[0] for row in csv.reader(lines)]
            yield name, sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    sys.exit(main())
