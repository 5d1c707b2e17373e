from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.completion import fill_backend, merge_auto_complete
from tritonpy_config.known_backends import BackendFiles
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import Internal, InvalidArgument


def parse(text=""):
    return text_format.Parse(text, ModelConfig())


def filled(text, files, installed=(), name="m"):
    config = fill_backend(parse(text), name, files, installed)
    return config.backend, config.platform, config.default_model_filename


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            ["1/model.savedmodel/saved_model.pb"],
            ("tensorflow", "tensorflow_savedmodel", "model.savedmodel"),
        ),
        (["1/model.graphdef"], ("tensorflow", "tensorflow_graphdef", "model.graphdef")),
        (["1/model.plan"], ("tensorrt", "tensorrt_plan", "model.plan")),
        (["1/model.onnx"], ("onnxruntime", "onnxruntime_onnx", "model.onnx")),
        (
            ["1/model.onnx/model.onnx", "1/model.onnx/weights"],
            ("onnxruntime", "onnxruntime_onnx", "model.onnx"),
        ),
        (["1/model.xml", "1/model.bin"], ("openvino", "", "model.xml")),
        (["1/model.pt"], ("pytorch", "pytorch_libtorch", "model.pt")),
        (["1/model.pt2"], ("pytorch", "torch_aoti", "model.pt2")),
        (["1/model.py"], ("python", "", "model.py")),
        (["1/model.py", "1/model.onnx"], ("onnxruntime", "onnxruntime_onnx", "model.onnx")),
        (
            ["config.pbtxt", "labels.txt", "configs/model.plan", "3/model.py"],
            ("python", "", "model.py"),
        ),
    ],
)
def test_the_file_in_the_version_folder_determines_the_backend(files, expected):
    assert filled("", files) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('platform: "onnxruntime_onnx"', ("onnxruntime", "onnxruntime_onnx", "model.onnx")),
        (
            'platform: "tensorflow_graphdef"',
            ("tensorflow", "tensorflow_graphdef", "model.graphdef"),
        ),
        ('platform: "libtorch"', ("pytorch", "libtorch", "model.pt")),
        ('platform: "torch_aoti"', ("pytorch", "torch_aoti", "model.pt2")),
        ('backend: "tensorrt"', ("tensorrt", "tensorrt_plan", "model.plan")),
        ('backend: "python"', ("python", "", "model.py")),
        ('backend: "openvino" default_model_filename: "m.onnx"', ("openvino", "", "m.onnx")),
        (
            'backend: "onnxruntime" default_model_filename: "a.onnx"',
            ("onnxruntime", "onnxruntime_onnx", "a.onnx"),
        ),
        ('default_model_filename: "model.plan"', ("tensorrt", "tensorrt_plan", "model.plan")),
        ('default_model_filename: "other.bin"', ("", "", "other.bin")),
        ('backend: "stranger"', ("stranger", "", "")),
        ('backend: "onnxruntime" platform: "strange"', ("onnxruntime", "strange", "model.onnx")),
        ('platform: "ensemble"', ("", "ensemble", "")),
        ('platform: "strange"', ("", "strange", "")),
    ],
)
def test_the_configuration_determines_the_backend_without_files(text, expected):
    assert filled(text, []) == expected


def test_the_configuration_has_precedence_over_the_files():
    assert filled('backend: "python"', ["1/model.onnx"]) == ("python", "", "model.py")
    assert filled('platform: "ensemble"', ["1/model.onnx"]) == ("", "ensemble", "")


def test_a_configured_backend_takes_the_present_format():
    assert filled('backend: "tensorflow"', ["1/model.graphdef"])[1] == "tensorflow_graphdef"
    assert filled('backend: "pytorch"', ["1/model.pt2"]) == ("pytorch", "torch_aoti", "model.pt2")


def test_files_and_folders_are_distinguished():
    with pytest.raises(InvalidArgument):
        filled("", ["1/model.savedmodel"])
    with pytest.raises(InvalidArgument):
        filled("", ["1/model.plan/part"])


def test_the_version_that_sorts_first_as_text_decides():
    assert filled("", ["2/model.py", "10/model.onnx"])[0] == "onnxruntime"


def test_an_installed_backend_is_found_by_its_files_and_platforms():
    installed = [BackendFiles("sklearn", ("sk",), ("model.joblib", "model.pkl"))]
    assert filled("", ["1/model.pkl"], installed) == ("sklearn", "sk", "model.pkl")
    assert filled('platform: "sk"', [], installed) == ("sklearn", "sk", "model.joblib")
    assert filled('backend: "sklearn"', ["1/model.pkl"], installed) == (
        "sklearn",
        "sk",
        "model.pkl",
    )
    assert filled('backend: "sklearn"', [], installed) == ("sklearn", "sk", "model.joblib")


def test_the_suffix_of_the_name_determines_an_unknown_backend():
    assert filled("", ["1/data"], name="ident.identity") == ("identity", "", "model.identity")


def test_an_undetermined_backend_is_refused():
    with pytest.raises(InvalidArgument) as caught:
        filled("", ["1/data"])
    assert caught.value.message == (
        "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'."
    )


def test_the_folder_provides_a_missing_name():
    assert fill_backend(parse('backend: "python"'), "m", []).name == "m"
    assert fill_backend(parse('name: "other" backend: "python"'), "m", []).name == "other"


def test_filling_does_not_change_the_argument():
    config = parse()
    fill_backend(config, "m", ["1/model.onnx"])
    assert config == ModelConfig()


BEFORE = 'name: "m" backend: "python" input { name: "OLD" data_type: TYPE_FP32 dims: 1 } instance_group { count: 3 }'


def test_a_backend_completes_tensors_batch_size_scheduling_and_decoupled():
    completed = parse(
        'max_batch_size: 4 input { name: "A" data_type: TYPE_INT8 dims: 2 } output { name: "B" data_type: TYPE_INT8 dims: 2 } '
        "dynamic_batching { max_queue_delay_microseconds: 5 } model_transaction_policy { decoupled: true }"
    )
    merged = merge_auto_complete(parse(BEFORE), completed)
    expected = parse(
        'name: "m" backend: "python" max_batch_size: 4 input { name: "A" data_type: TYPE_INT8 dims: 2 } '
        'output { name: "B" data_type: TYPE_INT8 dims: 2 } instance_group { count: 3 } '
        "dynamic_batching { max_queue_delay_microseconds: 5 } model_transaction_policy { decoupled: true }"
    )
    assert merged == expected


def test_other_completed_fields_are_ignored():
    completed = parse(BEFORE)
    completed.name, completed.backend = "other", "other"
    completed.instance_group[0].count = 9
    completed.parameters["k"].string_value = "v"
    assert merge_auto_complete(parse(BEFORE), completed) == parse(BEFORE)


def test_a_configured_scheduler_keeps_its_settings():
    config = parse("dynamic_batching { max_queue_delay_microseconds: 5 }")
    completed = parse("dynamic_batching { max_queue_delay_microseconds: 9 }")
    assert merge_auto_complete(config, completed) == config


def test_decoupled_stays_if_the_backend_does_not_set_it():
    config = parse("model_transaction_policy { decoupled: true }")
    assert merge_auto_complete(config, parse()) == config


@pytest.mark.parametrize(("text", "number"), [("sequence_batching {}", 13), ("", 0)])
def test_another_kind_of_scheduling_is_refused(text, number):
    with pytest.raises(Internal) as caught:
        merge_auto_complete(parse("dynamic_batching {}"), parse(text))
    assert (
        caught.value.message
        == f"Cannot update scheduling choice from 11 to {number} when auto-completing."
    )


def test_merging_does_not_change_the_arguments():
    config, completed = parse(BEFORE), parse("max_batch_size: 4 dynamic_batching {}")
    merge_auto_complete(config, completed)
    assert config == parse(BEFORE)
    assert completed == parse("max_batch_size: 4 dynamic_batching {}")
