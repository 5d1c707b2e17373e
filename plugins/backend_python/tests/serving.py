"""Servers with Python models."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import psutil

from tritonpy_testing import InferInput, InProcessClient, RunningServer, running_server

WAIT_S = 60.0
NO_PORTS = {"http": False, "grpc": False, "metrics": False}
IMPORTS = """\
import os, signal, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils
"""
ONE_IN_ONE_OUT = """
backend: "python" max_batch_size: 8
input { name: "IN" data_type: TYPE_INT64 dims: -1 } output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
"""
DOUBLE = """
def execute(self, requests):
    return [
        pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() * 2)]) for request in requests
    ]
"""


def model_py(methods: str) -> str:
    """Return the text of a model.py whose class has these methods."""
    body = "".join(
        f"    {line}\n" if line else "\n" for line in dedent(methods).strip().splitlines()
    )
    return f"{IMPORTS}\nclass TritonPythonModel:\n{body}"


def write_model(
    repository: Path, name: str, methods: str = DOUBLE, config: str | None = ONE_IN_ONE_OUT
) -> Path:
    """Write a model and return its folder."""
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "1" / "model.py").write_text(model_py(methods))
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


@contextmanager
def served(repository: Path, **more: Any) -> Iterator[RunningServer]:
    """Serve a repository. All workers have ended afterwards."""
    settings: Mapping[str, Any] = {
        "repositories": [{"url": str(repository)}],
        "frontends": NO_PORTS,
        "exit_on_error": False,
        **more,
    }
    with running_server(settings) as server:
        yield server
    wait_for(lambda: not workers())


def query(
    server: RunningServer, model: str, values: Any = (1, 2), name: str = "IN"
) -> np.ndarray[Any, Any]:
    """Send int64 values as one row and return the output OUT."""
    data = np.array([values], np.int64)
    tensor = InferInput(name, list(data.shape), "INT64").set_data_from_numpy(data)
    return InProcessClient(server).infer(model, [tensor]).as_numpy("OUT")


def workers() -> list[psutil.Process]:
    """Return the worker processes of this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any("tritonpy_backend_python" in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.01)


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))
