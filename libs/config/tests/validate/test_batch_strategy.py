from __future__ import annotations

from google.protobuf import text_format

from tritonpy_config.validate.batch_strategy import (
    batch_library_problems,
    batch_strategy_problems,
)
from tritonpy_protos.model_config_pb2 import ModelConfig

LIBRARY = (
    'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/models/m/rules.so" } }'
)


def problems(text):
    return [
        (each.path, each.text)
        for each in batch_strategy_problems(text_format.Parse(text, ModelConfig(name="m")))
    ]


def test_a_batching_library_is_refused_with_an_alternative():
    ((path, text),) = problems(LIBRARY)
    assert path == 'parameters["TRITON_BATCH_STRATEGY_PATH"]'
    assert "a shared library, which this server does not load" in text
    assert "tritonpy_batch_policies" in text
    assert "'batch_policy'" in text


def test_sequence_models_get_tritons_text():
    ((_, text),) = problems(LIBRARY + "sequence_batching {}")
    assert text == (
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy"
    )


def test_other_parameters_are_ignored():
    assert problems('parameters { key: "batch_policy" value { string_value: "volume" } }') == []


def libraries(text, *files):
    config = text_format.Parse(text, ModelConfig(name="m"))
    return [each.text.partition(" is a ")[0] for each in batch_library_problems(config, files)]


def test_a_library_in_the_model_or_version_folder_is_refused():
    files = (
        "config.pbtxt",
        "1/model.onnx",
        "1/batchstrategy.so",
        "batchstrategy.so",
        "1/data/batchstrategy.so",
    )
    assert libraries("dynamic_batching {}", *files) == ["1/batchstrategy.so", "batchstrategy.so"]


def test_libraries_in_other_folders_are_ignored():
    for text in ("sequence_batching {}", "ensemble_scheduling {}"):
        assert libraries(text, "batchstrategy.so") == []
