"""Scarce resources: few descriptors, little shared memory, a full disk and killed workers."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc
import tritonclient.http
from geventhttpclient.response import HTTPConnectionClosed
from tritonclient.utils import InferenceServerException

from tests.conftest import TIMEOUT_S, Models, ServerProcess, tensors_text

DOUBLE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each * np.float32(2))]) for each in inputs]
"""
MOUNTS = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
needs_mounts = pytest.mark.skipif(
    not MOUNTS, reason="needs the right to mount in a namespace of its own: run as root"
)


def with_small_mount(folder: str, kib: int) -> tuple[str, ...]:
    """Return a command that runs another one with a file system of `kib` KiB at `folder`."""
    return (
        "unshare",
        "-m",
        "sh",
        "-c",
        f'mount -t tmpfs -o size={kib}k tmpfs {folder} && exec "$@"',
        "sh",
    )


def write_double(models: Models, instances: int) -> None:
    """Write a Python model that doubles IN; each instance has its own process."""
    config = f'backend: "python"\n{tensors_text("FP32", "-1")}instance_group {{ count: {instances} kind: KIND_CPU }}\n'
    models.repository.add("double", config, {1: {"model.py": DOUBLE.encode()}})


def infer(module: Any, client: Any, values: np.ndarray) -> np.ndarray:
    """Return OUT."""
    tensor = module.InferInput("IN", list(values.shape), "FP32")
    tensor.set_data_from_numpy(values)
    return np.asarray(client.infer("double", [tensor]).as_numpy("OUT"))


@contextlib.contextmanager
def clients(served: ServerProcess) -> Iterator[dict[Any, Any]]:
    """A client of each protocol, by its module."""
    with (
        tritonclient.http.InferenceServerClient(served.http, network_timeout=TIMEOUT_S) as http,
        tritonclient.grpc.InferenceServerClient(served.grpc) as grpc,
    ):
        yield {tritonclient.http: http, tritonclient.grpc: grpc}


@needs_mounts
def test_large_tensors_reach_workers_with_little_shared_memory(serve: Any, models: Models) -> None:
    write_double(models, 1)
    values = np.arange(4 << 20, dtype=np.float32)
    with serve(
        f"--model-repository={models.path}", under=with_small_mount("/dev/shm", 64)
    ) as served:
        with clients(served) as both:
            for module, client in both.items():
                assert np.array_equal(infer(module, client, values), values * 2)
        os.kill(served.process.pid, signal.SIGTERM)
        assert served.wait_until_exit() == 0


@needs_mounts
def test_a_full_disk_loses_traces_but_no_responses(
    serve: Any, models: Models, tmp_path: Path
) -> None:
    write_double(models, 1)
    disk = tmp_path / "disk"
    disk.mkdir()
    traced = (
        "--trace-config",
        f"triton,file={disk}/trace.json",
        "--trace-config",
        "triton,log-frequency=1",
        "--trace-config",
        "level=TENSORS",
        "--trace-config",
        "rate=1",
    )
    with (
        serve(
            f"--model-repository={models.path}", *traced, under=with_small_mount(str(disk), 64)
        ) as served,
        clients(served) as both,
    ):
        values = np.arange(20_000, dtype=np.float32)
        for _ in range(4):
            for module, client in both.items():
                assert np.array_equal(infer(module, client, values), values * 2)
        served.wait_until_logged("No space left on device")
        assert served.request("/v2/health/ready").status == 200


@pytest.mark.skipif(
    shutil.which("prlimit") is None, reason="needs prlimit, of the package util-linux"
)
def test_a_server_with_few_descriptors_recovers_from_a_connection_flood(
    serve: Any, models: Models
) -> None:
    write_double(models, 1)
    values = np.arange(5, dtype=np.float32)
    with serve(f"--model-repository={models.path}", under=("prlimit", "--nofile=64:64")) as served:
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                for port in served.ports.values():
                    with contextlib.suppress(OSError):
                        stack.enter_context(
                            socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
                        )
        # The server may still close connections until it detects the end of the flood.
        served.wait(lambda: _doubles(served, values), "answers after the flood")


def test_killed_workers_cause_no_wrong_response_and_leave_no_process(
    serve: Any, models: Models
) -> None:
    write_double(models, 3)
    rng = random.Random(7)
    with serve(f"--model-repository={models.path}") as served, clients(served) as both:
        workers = _workers(served)
        assert len(workers) == 3
        over = threading.Event()
        with ThreadPoolExecutor(4) as pool:
            tasks = [pool.submit(_infer_until, served, over, number) for number in range(4)]
            for _ in range(12):
                living = served.wait(
                    lambda: len(found := _workers(served)) == 3 and found, "three workers"
                )
                victim = rng.choice(living)
                victim.kill()
                served.wait(
                    lambda victim=victim: not victim.is_running(), "the killed worker is gone"
                )
            over.set()
            counts = [task.result(TIMEOUT_S) for task in tasks]
        right, wrong, failed = (sum(column) for column in zip(*counts, strict=True))
        assert wrong == 0
        assert right > 100
        assert failed <= 12 * 2  # per killed worker: the request it executed and the one sent to it
        served.wait(lambda: len(_workers(served)) == 3, "three workers at the end")
        for module, client in both.items():
            assert infer(module, client, np.ones(3, np.float32)).tolist() == [2, 2, 2]


def _doubles(served: ServerProcess, values: np.ndarray) -> bool:
    """Return whether clients of both protocols get correct responses."""
    try:
        with clients(served) as both:
            return all(
                np.array_equal(infer(module, client, values), values * 2)
                for module, client in both.items()
            )
    except (InferenceServerException, ConnectionError, HTTPConnectionClosed):
        return False


def _workers(served: ServerProcess) -> list[psutil.Process]:
    """Return the instance processes: direct children without children that are not zombies."""
    found = []
    for process in psutil.Process(served.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and not process.children():
                found.append(process)
    return found


def _infer_until(served: ServerProcess, over: threading.Event, number: int) -> tuple[int, int, int]:
    """Return the counts of correct responses, wrong responses and failed requests."""
    right = wrong = failed = 0
    module = tritonclient.http if number % 2 else tritonclient.grpc
    with clients(served) as both:
        while not over.is_set():
            values = np.full(3, number * 1000 + right, np.float32)
            try:
                answer = infer(module, both[module], values)
            except InferenceServerException:
                failed += 1
                continue
            if np.array_equal(answer, values * 2):
                right += 1
            else:
                wrong += 1
    return right, wrong, failed
