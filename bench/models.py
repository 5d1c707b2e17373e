"""Models of the benchmarks: the same function as an ONNX graph and as a Python-backend model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CONFIG = """\
name: "{name}"
backend: "{backend}"
max_batch_size: {max_batch_size}
{inputs}
{outputs}
instance_group [{{ count: 1 kind: KIND_CPU }}]
{batching}
"""
ONE_THREAD = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }'
MODEL_PY = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            b = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            responses.append(
                pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUTPUT0", a + b), pb_utils.Tensor("OUTPUT1", a - b)]
                )
            )
        return responses
"""


IDENTITY_PY = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(
                        "OUTPUT0",
                        pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy(),
                    )
                ]
            )
            for request in requests
        ]
"""
STRINGS_PY = """\
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            words = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            upper = np.array([word.upper() for word in words.ravel()], dtype=np.object_)
            upper = upper.reshape(words.shape)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", upper)]))
        return responses
"""
DELAYED = "dynamic_batching { max_queue_delay_microseconds: 500 }"
ENSEMBLE = """\
name: "{name}"
platform: "ensemble"
max_batch_size: {max_batch_size}
{inputs}
{outputs}
ensemble_scheduling {{ step [ {steps} ] }}
"""
STEP = """\
{{ model_name: "{model}" model_version: -1
   input_map {{ key: "INPUT0" value: "{read}0" }} input_map {{ key: "INPUT1" value: "{read}1" }}
   output_map {{ key: "OUTPUT0" value: "{made}0" }}
   output_map {{ key: "OUTPUT1" value: "{made}1" }} }}"""


def write_onnx(repository: Path) -> None:
    """Write add_sub and identity for ONNX Runtime."""
    _write(
        repository,
        "add_sub",
        "onnxruntime",
        _tensors("input", 2),
        _tensors("output", 2),
        "dynamic_batching { }",
    )
    _write(
        repository,
        "identity",
        "onnxruntime",
        _wide("input", "INPUT0"),
        _wide("output", "OUTPUT0"),
        "",
    )
    (repository / "add_sub/1/model.onnx").write_bytes(_add_sub())
    (repository / "identity/1/model.onnx").write_bytes(_identity())


def write_onnx_pair(repository: Path) -> None:
    """Write add_sub for ONNX Runtime with one intra-op thread: `single`, and `batched`."""
    for name, batching in (
        ("single", ""),
        ("batched", "dynamic_batching { max_queue_delay_microseconds: 500 }"),
    ):
        _write(
            repository,
            name,
            "onnxruntime",
            _tensors("input", 2),
            f"{_tensors('output', 2)}\n{ONE_THREAD}",
            batching,
        )
        (repository / name / "1/model.onnx").write_bytes(_add_sub())


def write_many(repository: Path, count: int) -> None:
    """Write add_sub for ONNX Runtime `count` times, as add_sub_0, add_sub_1, ..."""
    graph = _add_sub()
    for number in range(count):
        name = f"add_sub_{number}"
        _write(
            repository,
            name,
            "onnxruntime",
            _tensors("input", 2),
            _tensors("output", 2),
            "dynamic_batching { }",
        )
        (repository / name / "1/model.onnx").write_bytes(graph)


def write_many_tensors(repository: Path, counts: Sequence[int]) -> None:
    """Write models for ONNX Runtime that return their inputs: tensors_1, tensors_4, ..."""
    for count in counts:
        name = f"tensors_{count}"
        _write(
            repository,
            name,
            "onnxruntime",
            _tensors("input", count),
            f"{_tensors('output', count)}\n{ONE_THREAD}",
            "",
        )
        (repository / name / "1/model.onnx").write_bytes(_identities(count))


def write_cached(repository: Path, milliseconds: int = 1) -> None:
    """Write `cached`: a Python add_sub with a sleep per request and the response cache."""
    _write(
        repository,
        "cached",
        "python",
        _tensors("input", 2),
        _tensors("output", 2),
        "response_cache { enable: true }",
    )
    config = repository / "cached/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size: 64", "max_batch_size: 1"))
    slow = MODEL_PY.replace(
        "        for request",
        f"        time.sleep({milliseconds} / 1000 * len(requests))\n        for request",
    )
    (repository / "cached/1/model.py").write_text(f"import time\n\n{slow}")


def write_python(repository: Path) -> None:
    """Write add_sub for Triton's Python backend, with the same configuration."""
    _write(
        repository,
        "add_sub",
        "python",
        _tensors("input", 2),
        _tensors("output", 2),
        "dynamic_batching { }",
    )
    (repository / "add_sub/1/model.py").write_text(MODEL_PY)


def write_python_backend(repository: Path) -> None:
    """Write the models for Python backends: add_sub (also batched), identity, strings."""
    _write(repository, "single", "python", _tensors("input", 2), _tensors("output", 2), "")
    _write(repository, "batched", "python", _tensors("input", 2), _tensors("output", 2), DELAYED)
    _write(
        repository, "identity", "python", _wide("input", "INPUT0"), _wide("output", "OUTPUT0"), ""
    )
    _write(
        repository, "strings", "python", _words("input", "INPUT0"), _words("output", "OUTPUT0"), ""
    )
    sources = {
        "single": MODEL_PY,
        "batched": MODEL_PY,
        "identity": IDENTITY_PY,
        "strings": STRINGS_PY,
    }
    for name, source in sources.items():
        (repository / name / "1/model.py").write_text(source)


def write_pair(repository: Path, name: str, source: str = "") -> None:
    """Write add_sub as `name` and `name_copy`, for ONNX Runtime or with `source` for Python."""
    for model in (name, f"{name}_copy"):
        backend = "python" if source else "onnxruntime"
        _write(
            repository,
            model,
            backend,
            _tensors("input", 2),
            _tensors("output", 2),
            "dynamic_batching { }",
        )
        if source:
            (repository / model / "1/model.py").write_text(source)
        else:
            (repository / model / "1/model.onnx").write_bytes(_add_sub())


def write_ensembles(repository: Path) -> None:
    """Write `chain` and `batched_chain`: ensembles of three Python add_sub models in sequence."""
    for name, batching in (("chain", ""), ("batched_chain", "dynamic_batching { }")):
        models = [f"{name}_{number}" for number in range(3)]
        for model in models:
            _write(
                repository, model, "python", _tensors("input", 2), _tensors("output", 2), batching
            )
            (repository / model / "1/model.py").write_text(MODEL_PY)
        tensors = ["INPUT", "first", "second", "OUTPUT"]
        text = ENSEMBLE.format(
            name=name,
            max_batch_size=64 if batching else 1,
            inputs=_tensors("input", 2),
            outputs=_tensors("output", 2),
            steps=",".join(
                STEP.format(model=model, read=read, made=made)
                for model, read, made in zip(models, tensors, tensors[1:], strict=False)
            ),
        )
        (repository / name / "1").mkdir(parents=True, exist_ok=True)
        (repository / name / "config.pbtxt").write_text(text)


def _write(
    repository: Path, name: str, backend: str, inputs: str, outputs: str, batching: str
) -> None:
    size = 64 if batching else 1
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(
        name=name,
        backend=backend,
        max_batch_size=size,
        inputs=inputs,
        outputs=outputs,
        batching=batching,
    )
    (folder / "config.pbtxt").write_text(text)


def _tensors(direction: str, count: int) -> str:
    entries = ", ".join(
        f'{{ name: "{direction.upper()}{number}" data_type: TYPE_INT32 dims: [16] }}'
        for number in range(count)
    )
    return f"{direction} [{entries}]"


def _wide(direction: str, name: str) -> str:
    return f'{direction} [{{ name: "{name}" data_type: TYPE_FP32 dims: [-1] }}]'


def _words(direction: str, name: str) -> str:
    return f'{direction} [{{ name: "{name}" data_type: TYPE_STRING dims: [-1] }}]'


def _add_sub() -> bytes:
    from onnx import TensorProto, helper

    def tensor(name: str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])

    nodes = [
        helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
        helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
    ]
    graph = helper.make_graph(
        nodes,
        "add_sub",
        [tensor("INPUT0"), tensor("INPUT1")],
        [tensor("OUTPUT0"), tensor("OUTPUT1")],
    )
    return _serialised(graph)


def _identity() -> bytes:
    from onnx import TensorProto, helper

    def tensor(name: str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "n"])

    node = helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])
    return _serialised(
        helper.make_graph([node], "identity", [tensor("INPUT0")], [tensor("OUTPUT0")])
    )


def _identities(count: int) -> bytes:
    from onnx import TensorProto, helper

    def tensor(name: str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])

    numbers = range(count)
    return _serialised(
        helper.make_graph(
            [helper.make_node("Identity", [f"INPUT{each}"], [f"OUTPUT{each}"]) for each in numbers],
            "identities",
            [tensor(f"INPUT{each}") for each in numbers],
            [tensor(f"OUTPUT{each}") for each in numbers],
        )
    )


def _serialised(graph: object) -> bytes:
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
