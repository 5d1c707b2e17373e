"""Fixtures of the fuzz tests: a seeded random generator, corruption of bytes, and a target server.

The seed is new in every run and printed; TRITONPY_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc
import tritonclient.http

from tritonpy_testing import ModelRepository

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = int(os.environ.get("TRITONPY_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
ROW = list(range(16))


@pytest.fixture(scope="session")
def rng() -> random.Random:
    print(f"TRITONPY_FUZZ_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture(scope="module")
def target(
    serve: Any, tmp_path_factory: pytest.TempPathFactory, onnx_identity: Any
) -> Iterator[Any]:
    """A dedicated server; after all garbage it must serve, without leaks or unexpected log lines."""
    repository = ModelRepository(tmp_path_factory.mktemp("fuzz") / "models")
    shutil.copytree(ROOT / "examples" / "models" / "add_sub", repository.path / "add_sub")
    repository.add("texts", versions={1: {"model.onnx": onnx_identity("BYTES", ["batch", 2])}})
    with serve(
        f"--model-repository={repository.path}", "--model-control-mode=explicit", "--load-model=*"
    ) as served:
        assert_serves(served)
        process = psutil.Process(served.process.pid)
        descriptors, threads = process.num_fds(), process.num_threads()
        yield served
        assert_serves(served)
        served.wait(lambda: process.num_fds() <= descriptors + 8, "descriptors are closed again")
        # the pool of the event loop grows to its bound in any case
        assert process.num_threads() <= threads + min(32, (os.cpu_count() or 1) + 4) + 2
        for surprise in ("Traceback", "error id"):
            at = served.log.find(surprise)
            assert at < 0, f"TRITONPY_FUZZ_SEED={SEED}: {served.log[max(0, at - 1000) : at + 6000]}"


def assert_serves(served: Any) -> None:
    values = np.array([ROW], np.int32)
    for protocol, address in ((tritonclient.http, served.http), (tritonclient.grpc, served.grpc)):
        inputs = [protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for given in inputs:
            given.set_data_from_numpy(values)
        with protocol.InferenceServerClient(address) as client:
            assert (client.infer("add_sub", inputs).as_numpy("OUTPUT0") == 2 * values).all()


@pytest.fixture(scope="session")
def damaged(rng: random.Random) -> Callable[[bytes], bytes]:
    """`damaged(whole)`: `whole` with bytes changed, removed or inserted."""

    def damage(whole: bytes) -> bytes:
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data) or 1)
            action = rng.randrange(4)
            if action == 0 and data:
                data[at % len(data)] = rng.randrange(256)
            elif action == 1:
                del data[at : at + rng.randint(1, 20)]
            elif action == 2:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
            else:
                del data[at:]
        return bytes(data)

    return damage
