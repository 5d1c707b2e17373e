"""Models in a complete server: files determine the platform, and bad models are isolated."""

from __future__ import annotations

import logging
import shutil

import numpy as np
import pytest
import torch

from tritonpy import TritonError
from tritonpy_testing import InferInput, InferRequestedOutput, InProcessClient, running_server

from .models import EAGER, LINEAR_IO, AddSub, Linear, Models
from .pytorch.test_pickles import Intruder

NO_PORTS = {"http": False, "grpc": False, "metrics": False}
X = np.array([[1, 2, 3]], np.float32)


class Folding(torch.nn.Module):
    """NEW = OUT = OLD + IN."""

    def forward(self, x: torch.Tensor, old: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + old
        return total, total


@pytest.fixture
def add(model_repository):
    """`add(name, config)`: the writer for version 1 of a new model."""
    return lambda name, config="": Models(model_repository.add(name, config) / "1")


@pytest.fixture
def serve(model_repository):
    """`serve(names)`: a server with the models `names`, and its client."""
    servers = []

    def start(*names):
        settings = {
            "repositories": [{"url": str(model_repository.path)}],
            "frontends": NO_PORTS,
            "control": {"mode": "explicit", "load": list(names)},
        }
        context = running_server(settings)
        servers.append(context)
        server = context.__enter__()
        return server, InProcessClient(server)

    yield start
    for context in servers:
        context.__exit__(None, None, None)


def infer(client, model, array=X, name="x", output="OUTPUT__0", **more):
    tensor = InferInput(name, list(array.shape), "FP32").set_data_from_numpy(array)
    return (
        client.infer(model, [tensor], outputs=[InferRequestedOutput(output)], **more)
        .as_numpy(output)
        .tolist()
    )


def test_the_file_determines_the_platform(add, serve, compile_module):
    add("exported").linear_export()
    shutil.copy(compile_module, add("compiled").at("model.pt2"))
    add("script", 'backend: "pytorch" max_batch_size: 8 ' + LINEAR_IO).script(Linear())
    add(
        "written", 'backend: "pytorch" runtime: "model.py" max_batch_size: 8 ' + LINEAR_IO + EAGER
    ).python(weights="model.pt")
    server, client = serve("exported", "compiled", "script", "written")
    assert [infer(client, name) for name in ("exported", "script", "written")] == [[[6, 12]]] * 3
    configs = {
        name: server.engine.model_config(name)
        for name in ("exported", "compiled", "script", "written")
    }
    assert {name: (config.backend, config.platform) for name, config in configs.items()} == {
        "exported": ("pytorch", "torch_aoti"), "compiled": ("pytorch", "torch_aoti"),
        "script": ("pytorch", "pytorch_libtorch"), "written": ("pytorch", "pytorch_libtorch"),
    }  # fmt: skip
    ones = InferInput("ARGS[0]", [1, 16], "INT32").set_data_from_numpy(np.ones((1, 16), np.int32))
    twos = InferInput("ARGS[1]", [1, 16], "INT32").set_data_from_numpy(
        np.full((1, 16), 2, np.int32)
    )
    assert client.infer("compiled", [ones, twos]).as_numpy("RESULT[0]").tolist() == [[3] * 16]


BAD = {
    "truncated": lambda models, mark: models.script(Linear()).write_bytes(
        models.at("model.pt").read_bytes()[:-100]
    ),
    "nonsense": lambda models, mark: models.at("model.pt").write_bytes(b"this is no model"),
    "absent": lambda models, mark: models.at("notes.txt").touch(),
    "executing": lambda models, mark: torch.save([Intruder(mark)], models.at("model.pt")),
    "unfitting": lambda models, mark: models.script(AddSub()),
}
REASONS = {
    "truncated": "is damaged or truncated",
    "nonsense": "is not a PyTorch model: it is neither a PyTorch archive nor a pickle",
    "absent": "unable to find '",
    "executing": "loading it would execute code",
    "unfitting": "unable to load model 'bad', configuration expects 1 inputs, model provides 2",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_model_is_rejected_and_does_not_affect_others(add, serve, tmp_path, kind):
    config = 'backend: "pytorch" max_batch_size: 8 ' + LINEAR_IO
    add("good", config).script(Linear())
    BAD[kind](add("bad", config), tmp_path / "executed")
    server, client = serve("good")
    with pytest.raises(TritonError):
        server.engine.load_model("bad")
    [line] = [line for line in server.engine.repository_index() if line.name == "bad"]
    assert REASONS[kind] in line.reason
    assert infer(client, "good") == [[6, 12]]
    assert not (tmp_path / "executed").exists()


def test_a_sequence_keeps_its_state(add, serve):
    config = """
        backend: "pytorch" max_batch_size: 4
        input { name: "IN__0" data_type: TYPE_FP32 dims: 1 } output { name: "OUT__0" data_type: TYPE_FP32 dims: 1 }
        sequence_batching { oldest { max_candidate_sequences: 4 } max_sequence_idle_microseconds: 60000000
            state { input_name: "OLD__1" output_name: "NEW__1" data_type: TYPE_FP32 dims: 1 } }"""
    add("folding", config).script(Folding())
    _, client = serve("folding")
    found = []
    for step, value in enumerate((1.0, 2.0, 3.0)):
        array = np.array([[value]], np.float32)
        found += infer(
            client,
            "folding",
            array,
            "IN__0",
            "OUT__0",
            sequence_id=7,
            sequence_start=step == 0,
            sequence_end=step == 2,
        )
    assert found == [[1], [3], [6]]


def test_many_instances_and_requests_at_once(add, serve):
    config = (
        'backend: "pytorch" max_batch_size: 8 dynamic_batching { } instance_group { count: 3 kind: KIND_CPU } '
        + LINEAR_IO
    )
    add("busy", config).script(Linear())
    server, client = serve("busy")
    arrays = [np.full((1, 3), number, np.float32) for number in range(60)]
    calls = [
        client.async_infer("busy", [InferInput("x", [1, 3], "FP32").set_data_from_numpy(array)])
        for array in arrays
    ]
    assert [call.get_result().as_numpy("OUTPUT__0").tolist() for call in calls] == [
        [[3 * n, 6 * n]] for n in range(60)
    ]
    server.engine.unload_model("busy")


def test_the_first_model_sizes_the_interop_pool_and_the_second_is_warned(add, serve, caplog):
    def configured(count):
        return f'parameters {{ key: "INTER_OP_THREAD_COUNT" value {{ string_value: "{count}" }} }}'

    config = 'backend: "pytorch" max_batch_size: 8 ' + LINEAR_IO
    for name, count in (("first", 3), ("second", 5)):
        add(name, config + configured(count)).script(Linear())
    with caplog.at_level(logging.WARNING):
        _, client = serve("first", "second")
    assert "inter-operator threads, but the process has" in caplog.text
    assert infer(client, "first") == infer(client, "second") == [[6, 12]]
