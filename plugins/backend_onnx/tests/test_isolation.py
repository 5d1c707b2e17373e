"""Models in their own processes respond, fail and complete configurations as in threads."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tritonpy import InvalidArgument, TritonError
from tritonpy_backend_onnx.backend import OnnxRuntimeBackend
from tritonpy_testing import (
    BackendContract,
    InferenceServerException,
    InferInput,
    InProcessClient,
    ModelRepository,
    running_server,
)

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
MODES = {"thread": "", "process": ISOLATED}


class TestIsolatedNumbers(BackendContract):
    plugin_class = OnnxRuntimeBackend
    config = 'name: "m" backend: "onnxruntime" max_batch_size: 8 ' + ISOLATED

    @pytest.fixture(autouse=True)
    def _models(self, models):
        self.models = models

    def write_model(self, version_folder):
        self.models.path = version_folder / "model.onnx"
        self.models.add_sub()

    def bad_inputs(self, harness, random):
        return {name: np.ones((1, 15), np.int32) for name in ("INPUT0", "INPUT1")}


@pytest.fixture
def repository(model_repository, models):
    """The same model in a thread and in a process, and a model with a broken file."""

    def add(name, config):
        folder = model_repository.add(name, config)
        models.path = folder / "1" / "model.onnx"
        return models

    for mode, more in MODES.items():
        add(f"add_sub_{mode}", more).add_sub()
        add(f"text_{mode}", "max_batch_size: 4 " + more).identity("BYTES", ["batch", 2])
        add(f"half_{mode}", "max_batch_size: 4 " + more).identity("BF16", ["batch", 2])
        broken = add(f"broken_{mode}", 'backend: "onnxruntime" max_batch_size: 4 ' + IO + more)
        broken.add_sub()
        Path(broken.path).write_bytes(b"this is no model")
        add(f"misfit_{mode}", 'backend: "onnxruntime" max_batch_size: 4 ' + IO + more).identity(
            "FP32", ["batch", 3]
        )
    return model_repository


IO = """
    input { name: "IN" data_type: TYPE_FP32 dims: 2 } output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""


@pytest.fixture
def server(repository: ModelRepository):
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "control": {"mode": "explicit"},
    }
    with running_server(config) as server:
        yield server


def numbers(name, array):
    return InferInput(name, list(array.shape), "INT32").set_data_from_numpy(array)


def both(act):
    """Return the results or errors of `act` for the model in a thread and in a process.

    Model names are removed.
    """
    found = []
    for mode in MODES:
        try:
            found.append(act(mode))
        except (TritonError, InferenceServerException) as error:
            found.append((type(error), str(error).replace(mode, "MODE")))
    return found


def children():
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            found |= set((thread / "children").read_text().split())
    return found


def eventually(condition):
    """Wait until `condition()` is true."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.001)


def test_responses_errors_and_configurations_are_the_same(server):
    client = InProcessClient(server)
    for mode in MODES:
        for name in ("add_sub", "text", "half"):
            server.engine.load_model(f"{name}_{mode}")

    def config(name, mode):
        found = type(server.engine.model_config(f"{name}_{mode}"))()
        found.CopyFrom(server.engine.model_config(f"{name}_{mode}"))
        found.parameters.clear()
        return str(found).replace(mode, "MODE")

    for name in ("add_sub", "text", "half"):
        here, there = both(lambda mode, name=name: config(name, mode))
        assert here == there
        assert "instance_group" in there

    one, other = np.arange(32, dtype=np.int32).reshape(2, 16), np.full((2, 16), 3, np.int32)
    here, there = both(
        lambda mode: [
            client.infer(f"add_sub_{mode}", [numbers("INPUT0", one), numbers("INPUT1", other)])
            .as_numpy(name)
            .tolist()
            for name in ("OUTPUT0", "OUTPUT1")
        ]
    )
    assert here == there == [(one + other).tolist(), (one - other).tolist()]

    words = np.array([["é".encode(), b""], [b"x" * 100_000, b"y"]], object)
    text = InferInput("IN", [2, 2], "BYTES").set_data_from_numpy(words)
    here, there = both(lambda mode: client.infer(f"text_{mode}", [text]).as_numpy("OUT").tolist())
    assert here == there == words.tolist()

    raw = InferInput("IN", [1, 2], "BYTES").set_data_from_numpy(
        np.array([[b"\xff\xfe", b""]], object)
    )
    here, there = both(lambda mode: client.infer(f"text_{mode}", [raw]))
    assert here == there
    assert here[0] is InferenceServerException


@pytest.mark.parametrize("name", ["broken", "misfit"])
def test_a_model_that_cannot_be_loaded_fails_with_the_same_reason(server, name):
    def load(mode):
        with pytest.raises(InvalidArgument):
            server.engine.load_model(f"{name}_{mode}")
        (line,) = [
            line for line in server.engine.repository_index() if line.name == f"{name}_{mode}"
        ]
        return line.reason.replace(mode, "MODE")

    here, there = both(load)
    assert here == there
    assert here


def test_a_killed_process_is_restarted_and_ends_with_its_model(server):
    before = children()
    server.engine.load_model("add_sub_process")
    client = InProcessClient(server)
    array = np.ones((1, 16), np.int32)

    def infer():
        return client.infer(
            "add_sub_process", [numbers("INPUT0", array), numbers("INPUT1", array)]
        ).as_numpy("OUTPUT0")

    assert (infer() == 2).all()
    (first,) = children() - before
    os.kill(int(first), signal.SIGKILL)
    eventually(lambda: children() - before - {first})
    assert (infer() == 2).all()
    server.engine.unload_model("add_sub_process")
    eventually(lambda: children() <= before)
