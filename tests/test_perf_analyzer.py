"""The real perf_analyzer against a server, over both protocols and in each of its modes."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import sequences

PERF_ANALYZER = os.environ.get("TRITONPY_PERF_ANALYZER", "")
WITHOUT_START = "must specify the START flag on the first request of the sequence"
CONCURRENCY = ("--concurrency-range=4",)
JSON = ("--input-tensor-format=json", "--output-tensor-format=json")
BINARY = ("--input-tensor-format=binary", "--output-tensor-format=binary")
MODES: dict[str, tuple[str, ...]] = {
    "http": ("-i", "http", *CONCURRENCY),
    "http, asynchronous": ("-i", "http", "--async", *CONCURRENCY),
    "http, JSON tensors": ("-i", "http", *JSON, *CONCURRENCY),
    "http, binary tensors": ("-i", "http", *BINARY, *CONCURRENCY),
    "http, JSON in and binary out": ("-i", "http", JSON[0], BINARY[1], *CONCURRENCY),
    "http, request rate": ("-i", "http", "--request-rate-range=200"),
    "http, Poisson request rate": (
        "-i",
        "http",
        "--async",
        "--request-rate-range=200",
        "--request-distribution=poisson",
    ),
    "grpc": ("-i", "grpc", *CONCURRENCY),
    "grpc, asynchronous": ("-i", "grpc", "--async", *CONCURRENCY),
    "grpc, streaming": ("-i", "grpc", "--streaming", *CONCURRENCY),
    "grpc, compressed": ("-i", "grpc", "--grpc-compression-algorithm=gzip", *CONCURRENCY),
    "grpc, request rate": ("-i", "grpc", "--async", "--request-rate-range=200"),
    "grpc, streaming at a rate": ("-i", "grpc", "--streaming", "--request-rate-range=200"),
}
pytestmark = pytest.mark.skipif(
    not PERF_ANALYZER,
    reason="needs the real perf_analyzer: set TRITONPY_PERF_ANALYZER to its path (tests/conformance/oracle.sh makes DIR/bin/perf_analyzer)",
)


def printed_by_perf_analyzer(server: Any, report: Path, model: str, mode: tuple[str, ...]) -> str:
    """Return the output of a run, which also writes its report."""
    done = subprocess.run(
        [
            PERF_ANALYZER, "-m", model, "-u", getattr(server, mode[1]), "-f", str(report),
            "--measurement-mode=count_windows", "--measurement-request-count=50", "--max-trials=5", "--stability-percentage=999",
            *mode,
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return printed


def measured(
    server: Any,
    report: Path,
    model: str,
    mode: tuple[str, ...],
    tries: int = 1,
    overtaken: str = "",
) -> dict[str, str]:
    """Return the report's first line by column; retry the error `overtaken` up to `tries` runs."""
    printed = printed_by_perf_analyzer(server, report, model, mode)
    while tries > 1 and overtaken in printed:
        printed = printed_by_perf_analyzer(server, report, model, mode)
        tries -= 1
    assert "error" not in printed.lower(), printed
    with report.open(newline="") as file:
        return next(csv.DictReader(file))


@pytest.mark.parametrize("mode", MODES)
def test_the_real_perf_analyzer_measures_a_model(server: Any, tmp_path: Path, mode: str) -> None:
    line = measured(server, tmp_path / "report.csv", "add_sub", (*MODES[mode], "-b", "2"))
    assert float(line["Inferences/Second"]) > 0
    # read from the server's statistics: nonzero if they moved during the measurement
    assert float(line["Server Compute Infer"]) > 0


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_real_perf_analyzer_measures_a_model_of_strings(
    server: Any, tmp_path: Path, protocol: str
) -> None:
    mode = ("-i", protocol, "--shape=IN:2,3", "--string-length=20", *CONCURRENCY)
    line = measured(server, tmp_path / "report.csv", "identity_bytes", mode)
    assert float(line["Inferences/Second"]) > 0


SEQUENCES: dict[str, tuple[str, ...]] = {
    "grpc, streaming": ("-i", "grpc", "--streaming", *CONCURRENCY),
    "grpc, asynchronous": ("-i", "grpc", "--async", *CONCURRENCY),
    "grpc, streaming at a rate": (
        "-i",
        "grpc",
        "--streaming",
        "--request-rate-range=100",
        "--num-of-sequences=5",
    ),
    "http": ("-i", "http", *CONCURRENCY),
    "http, asynchronous": ("-i", "http", "--async", *CONCURRENCY),
}


@pytest.fixture(scope="module")
def accumulators(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with the models of the sequence benchmark."""
    folder = tmp_path_factory.mktemp("accumulators") / "models"
    sequences.write(folder)
    with serve(
        f"--model-repository={folder}",
        "--model-control-mode=explicit",
        "--load-model=direct_1",
        "--load-model=oldest_1",
    ) as served:
        yield served


@pytest.mark.parametrize(
    ("mode", "model"),
    [
        *((mode, "direct_1") for mode in SEQUENCES),
        ("grpc, streaming", "oldest_1"),
        ("http", "oldest_1"),
    ],
)
def test_the_real_perf_analyzer_measures_sequences(
    accumulators: Any, tmp_path: Path, mode: str, model: str
) -> None:
    more = (
        "--sequence-length=5",
        "--sequence-length-variation=40",
        "--sequence-id-range=10:100000",
    )
    # perf_analyzer ends its sequences without waiting for requests in flight. Over HTTP the end uses
    # another connection and can overtake the sequence's first request, whatever the server.
    tries = 3 if mode.startswith("http") else 1
    line = measured(
        accumulators,
        tmp_path / "report.csv",
        model,
        (*SEQUENCES[mode], *more),
        tries,
        WITHOUT_START,
    )
    assert float(line["Inferences/Second"]) > 0


def test_the_real_perf_analyzer_measures_a_decoupled_model(server: Any, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text('{"data": [{"IN": [3]}]}')
    mode = ("-i", "grpc", "--streaming", f"--input-data={data}", *CONCURRENCY)
    line = measured(server, tmp_path / "report.csv", "repeat", mode)
    assert float(line["Inferences/Second"]) > 0
