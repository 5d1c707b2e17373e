"""The tensors of model files are read by their backends in a child process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_checks import Machine
from tritonpy_lint.fixing import apply, plan_fixes
from tritonpy_lint.linting import LintOptions, lint

onnx = pytest.importorskip("onnx", reason="needs onnx, with which the model files are made")

HEAD = 'backend: "onnxruntime"\nmax_batch_size: 8\ndynamic_batching { }\n'
X = 'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }\n'
Y = 'output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }\n'


def save_model(path: Path, shape: list[object]) -> None:
    """Write an identity model with tensors of this shape."""
    tensors = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "XY"
    ]
    node = onnx.helper.make_node("Identity", ["X"], ["Y"])
    graph = onnx.helper.make_graph([node], "identity", tensors[:1], tensors[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def write(folder: Path, config: str, shape: list[object]) -> Path:
    """Write a model with its configuration and return the repository."""
    (folder / "models" / "m" / "1").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "m" / "config.pbtxt").write_text(config)
    save_model(folder / "models" / "m" / "1" / "model.onnx", shape)
    return folder / "models"


def codes(repository: Path, **options: object) -> list[str]:
    given = LintOptions(paths=[str(repository)], machine=Machine(cores=2), **options)
    return [finding.code for finding in lint(given).findings]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (HEAD + X + Y, []),
        ('backend: "onnxruntime"\n', []),
        (HEAD + X.replace("[ 4 ]", "[ -1, 4 ]") + Y, ["S001"]),
        (HEAD + X.replace("FP32", "FP64") + Y, ["T001"]),
        (HEAD + X + Y.replace("[ 4 ]", "[ 5 ]"), ["S007"]),
        (HEAD + X + Y.replace('"Y"', '"scores"'), ["T002"]),
        (HEAD + X.replace('"X"', '"image"') + Y, ["T003", "T002"]),
    ],
)
def test_a_configuration_is_compared_with_the_model_file(
    tmp_path: Path, config: str, expected: list[str]
) -> None:
    assert codes(write(tmp_path, config, ["batch", 4])) == expected


def test_a_fixed_batch_is_found(tmp_path: Path) -> None:
    assert codes(write(tmp_path, HEAD + X + Y, [1, 4])) == ["S002"]


def test_fixes_make_the_model_valid(tmp_path: Path) -> None:
    config = HEAD + X.replace("[ 4 ]", "[ -1, 4 ]") + Y.replace("FP32", "FP64")
    repository = write(tmp_path, config, ["batch", 4])
    options = LintOptions(paths=[str(repository)], machine=Machine(cores=2))
    apply(plan_fixes(lint(options).findings, unsafe=False))
    assert codes(repository) == []


def test_a_damaged_file_is_reported_and_others_are_still_read(tmp_path: Path) -> None:
    repository = write(tmp_path, HEAD + X.replace("FP32", "FP64") + Y, ["batch", 4])
    (repository / "a" / "1").mkdir(parents=True)
    (repository / "a" / "1" / "model.onnx").write_bytes(b"not a model")
    assert codes(repository) == ["F009", "T001"]


def test_model_files_can_be_left_out(tmp_path: Path) -> None:
    repository = write(tmp_path, HEAD + X.replace("FP32", "FP64") + Y, ["batch", 4])
    assert codes(repository, model_files=False) == []
