"""A repository of Python models, and a server for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import tritonserver

IMPORT = "import triton_python_backend_utils as pb_utils\nimport numpy as np\n"
ECHO = """
import json

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            outputs = [
                pb_utils.Tensor(each.name().removesuffix("in") + "out", each.as_numpy())
                for each in request.inputs()
            ]
            outputs.append(pb_utils.Tensor("request", np.array([json.dumps({
                "id": request.request_id(), "parameters": json.loads(request.parameters()),
                "correlation": request.correlation_id(), "flags": request.flags(),
                "timeout": request.timeout(),
            })], object)))
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
"""
REPEAT = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            (count,) = pb_utils.get_input_tensor_by_name(request, "count").as_numpy()
            sender, sent = request.get_response_sender(), 0
            while sent != count and not request.is_cancelled():
                sender.send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("number", np.array([sent], np.int32))]))
                sent += 1
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
FAIL = """
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("it fails"))
                for _ in requests]
"""
TYPES = {
    "bytes": "TYPE_STRING", "bool": "TYPE_BOOL", "fp16": "TYPE_FP16", "fp32": "TYPE_FP32",
    "fp64": "TYPE_FP64", "bf16": "TYPE_BF16", "int8": "TYPE_INT8", "int64": "TYPE_INT64",
    "uint8": "TYPE_UINT8", "uint64": "TYPE_UINT64",
}  # fmt: skip
ECHO_CONFIG = 'backend: "python"\n' + "\n".join(
    f'input {{ name: "{name}_in" data_type: {kind} dims: [-1, -1] optional: true }}'
    f'output {{ name: "{name}_out" data_type: {kind} dims: [-1, -1] }}'
    for name, kind in TYPES.items()
    if name != "bf16"
)
REQUEST_OUTPUT = 'output { name: "request" data_type: TYPE_STRING dims: 1 }'
REPEAT_CONFIG = """
    backend: "python"
    model_transaction_policy { decoupled: true }
    input { name: "count" data_type: TYPE_INT32 dims: 1 }
    output { name: "number" data_type: TYPE_INT32 dims: 1 }
"""
MODELS = {
    "echo": (ECHO_CONFIG + REQUEST_OUTPUT, ECHO),
    "repeat": (REPEAT_CONFIG, REPEAT),
    "fail": (ECHO_CONFIG, FAIL),
}


@pytest.fixture(scope="module", autouse=True)
def _restored_logging() -> Iterator[None]:
    """Undo what the options of servers changed for the whole process."""
    root, own = logging.getLogger(), logging.getLogger("tritonpy")
    handlers, levels = root.handlers[:], (root.level, own.level)
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def write_model(repository: Path, name: str, config: str, code: str) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    (folder / "model.py").write_text(IMPORT + code, encoding="utf-8")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a repository with the models above."""
    repository = tmp_path_factory.mktemp("models")
    for name, (config, code) in MODELS.items():
        write_model(repository, name, config, code)
    return str(repository)


@pytest.fixture(scope="module")
def server(models: str) -> Iterator[tritonserver.Server]:
    """A server that has loaded every model."""
    started = tritonserver.Server(
        model_repository=models,
        model_control_mode=tritonserver.ModelControlMode.EXPLICIT,
        startup_models=list(MODELS),
        exit_timeout=5,
    ).start(wait_until_ready=True)
    yield started
    started.stop()
