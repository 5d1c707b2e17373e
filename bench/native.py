"""Rows against native Triton, whose backend for ONNX is C++: `bench.compare --native-triton DIR`.

DIR is a Triton installation, usually `/opt/tritonserver`, with `bin/tritonserver` and
`backends/onnxruntime`. Both servers serve the same ONNX models with one instance and one intra-op
thread. Verdicts are those of varied requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench import processes
from bench.baseline import BATCHING, IN_FLIGHT, LOADS, TITLES, load_of
from bench.processes import Running
from bench.rows import NO_GOAL, P50, P99, RATE, Case

NATIVE, SUBJECT = "native Triton", "tritonpy with ONNX Runtime"
# Goal and aim by figure and model; a rate with 8 requests in flight and batching has none.
TARGETS = {
    (RATE, "single"): (0.9, 1.2),
    (RATE, "batched"): (1.0, 1.3),
    (P50, "single"): (1.1, 1.0),
    (P99, "single"): (1.0, 0.5),
}


def missing(folder: Path | None) -> str:
    """Return why there are no rows, or ""."""
    if folder is None:
        return "--native-triton is not given"
    for path in ("bin/tritonserver", "backends/onnxruntime"):
        if not (folder / path).exists():
            return f"{folder} has no {path}"
    return ""


def cases() -> Iterator[Case]:
    """Yield the rows: each protocol and form, with and without batching."""
    for protocol in LOADS:
        for model in BATCHING:
            for in_flight in IN_FLIGHT:
                yield _case(protocol, model, in_flight, P50 if in_flight == 1 else RATE)
            yield _case(protocol, model, 32, P99)


def _case(protocol: str, model: str, in_flight: int, figure: str) -> Case:
    is_judged = "varied" in protocol and not (model == "batched" and in_flight == 8)
    goal, aim = TARGETS.get((figure, model), (NO_GOAL, None)) if is_judged else (NO_GOAL, None)
    suffix = "" if figure == RATE else f" {figure}"
    return Case(
        f"ONNX add/sub, {TITLES[protocol]}, {BATCHING[model]}, {in_flight} in flight{suffix}",
        NATIVE,
        load_of(protocol, model, in_flight),
        goal,
        figure,
        SUBJECT,
        aim,
    )


def start(folder: Path, repository: Path) -> Callable[[], AbstractContextManager[Running]]:
    """Return a function that runs the installation in `folder` with the models of `repository`."""
    flag = f"--backend-directory={folder / 'backends'}"
    return lambda: processes.triton(folder / "bin" / "tritonserver", repository, flag)
