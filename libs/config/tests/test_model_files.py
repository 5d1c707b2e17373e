from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_config.model_files import (
    file_name_problems,
    foreign_path_problems,
    resolve_model_file,
)
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.parse import model_config
from tritonpy_types.errors import InvalidArgument

MODEL = Path("/models/m")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("model.onnx", "1/model.onnx"),
        ("data/model.onnx", "1/data/model.onnx"),
        ("./model.onnx", "1/model.onnx"),
        ("../shared.onnx", "shared.onnx"),
        ("../2/model.onnx", "2/model.onnx"),
        ("a/../../b", "b"),
        ("/model.onnx", "1/model.onnx"),
        ("/etc/passwd", "1/etc/passwd"),
        ("//etc/passwd", "1/etc/passwd"),
        (".", "1"),
    ],
)
def test_a_name_is_resolved_in_the_folder_of_the_model(name: str, path: str) -> None:
    assert resolve_model_file(name, MODEL / "1", MODEL) == MODEL / path


@pytest.mark.parametrize(
    "name", ["../../secret/1/model.onnx", "../..", "a/../../../b", "/../../b", "../../m/../x"]
)
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        resolve_model_file(name, MODEL / "1", MODEL)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a\0b", "has a null character"),
        ("x" * 256, "is too long"),
        ("é" * 128, "is too long"),
        ("x/" * 2100, "is too long"),
        ("\ud800", "is not text that a file name can have"),
    ],
)
def test_an_impossible_file_name_is_refused_with_a_short_text(name: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as refused:
        resolve_model_file(name, MODEL / "1", MODEL)
    assert len(refused.value.message) < 500


def test_the_longest_possible_name_is_accepted() -> None:
    assert resolve_model_file("x" * 255, MODEL, MODEL).name == "x" * 255


def test_dots_are_resolved_before_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "storage" / "v1").mkdir(parents=True)
    (tmp_path / "storage" / "secret").write_text("secret")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "1").symlink_to(tmp_path / "storage" / "v1")
    found = resolve_model_file("../secret", tmp_path / "m" / "1", tmp_path / "m")
    assert found == tmp_path / "m" / "secret"


def test_a_version_folder_and_a_file_may_be_links_to_storage(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    (tmp_path / "blob").write_text("weights")
    (tmp_path / "storage" / "model.onnx").symlink_to(tmp_path / "blob")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "1").symlink_to(tmp_path / "storage")
    assert (
        resolve_model_file("model.onnx", tmp_path / "m" / "1", tmp_path / "m").read_text()
        == "weights"
    )


STATE = "sequence_batching {{ state {{ input_name: 'S' initial_state {{ name: 'i' data_file: '{0}' }} }} }}"


@pytest.mark.parametrize(
    ("text", "key", "depth"),
    [
        ("default_model_filename: '{0}'", "default_model_filename", 1),
        ("cc_model_filenames {{ key: '8.0' value: '{0}' }}", 'cc_model_filenames["8.0"]', 1),
        (
            "output {{ name: 'A' }} output {{ name: 'B' label_filename: '{0}' }}",
            "output[1].label_filename",
            0,
        ),
        (
            "model_warmup {{ name: 'w' inputs {{ key: 'IN' value {{ input_data_file: '{0}' }} }} }}",
            'model_warmup[0].inputs["IN"].input_data_file',
            1,
        ),
        (STATE, "sequence_batching.state[0].initial_state[0].data_file", 1),
    ],
)
def test_every_file_name_of_a_configuration_stays_in_the_folder(
    text: str, key: str, depth: int
) -> None:
    inside, outside = "../" * depth + "x", "../" * (depth + 1) + "x"
    assert list(file_name_problems(model_config(text.format(inside)))) == []
    (problem,) = file_name_problems(model_config(text.format(outside)))
    assert (problem.path, problem.text) == (key, f"'{outside}' is outside the model's folder")


def test_the_runtime_stays_in_the_folder_of_the_backend() -> None:
    (problem,) = file_name_problems(
        model_config("name: 'm' backend: 'python' runtime: '../../x.so'")
    )
    assert problem.path == "runtime"
    assert problem.text == (
        "backend library name '../../x.so' escapes backend directory 'python', for model 'm', check model config runtime field"
    )


PATHS = {
    "parameters {{ key: 'PATH' value {{ string_value: '{0}' }} }}": 'parameters["PATH"]',
    "model_operations {{ op_library_filename: '{0}' }}": "model_operations.op_library_filename[0]",
    "optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: 'tensorrt' parameters {{ key: 'PATH' value: '{0}' }} }} }} }}": (
        'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["PATH"]'
    ),
}


def foreign(text: str, own: str = "") -> list[str]:
    own_config: ModelConfig = model_config(own)
    return [
        problem.path
        for problem in foreign_path_problems(model_config(text), own_config, {"PATH"}, MODEL)
    ]


@pytest.mark.parametrize("text", PATHS)
@pytest.mark.parametrize(
    "path",
    ["/opt/x", "x.so", "$$TRITON_MODEL_DIRECTORY/../x", "$$TRITON_MODEL_DIRECTORYx", "/models/m/../x", "/models/m/x;/opt/x"],
)  # fmt: skip
def test_a_load_request_may_not_name_foreign_paths(text: str, path: str) -> None:
    assert foreign(text.format(path)) == [PATHS[text]]


@pytest.mark.parametrize("text", PATHS)
@pytest.mark.parametrize(
    "path", ["$$TRITON_MODEL_DIRECTORY/x", "$$TRITON_MODEL_DIRECTORY", "/models/m/1/x", ""]
)
def test_a_load_request_may_name_paths_in_the_folder(text: str, path: str) -> None:
    assert foreign(text.format(path)) == []


@pytest.mark.parametrize("text", PATHS)
def test_a_load_request_may_repeat_a_path_of_the_models_own_configuration(text: str) -> None:
    assert foreign(text.format("/opt/x"), text.format("/opt/x")) == []
    assert foreign(text.format("/opt/y"), text.format("/opt/x")) == [PATHS[text]]


def test_other_parameters_are_not_restricted() -> None:
    assert foreign("parameters { key: 'OTHER' value { string_value: '/opt/x' } }") == []
