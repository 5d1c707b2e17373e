from __future__ import annotations

from google.protobuf import text_format

from tritonpy.config.validate.batch_strategy import batch_library_problems, batch_strategy_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

LIBRARY = 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/models/m/rules.so" } }'


def problems(text):
    return [(each.path, each.text) for each in batch_strategy_problems(text_format.Parse(text, ModelConfig(name="m")))]


def test_a_library_of_rules_is_refused_and_the_text_says_what_takes_its_place():
    ((path, text),) = problems(LIBRARY)
    assert path == 'parameters["TRITON_BATCH_STRATEGY_PATH"]'
    assert "a shared library, which this server does not load" in text
    assert "tritonpy_batch_policies" in text
    assert "'batch_policy'" in text


def test_sequences_are_told_what_triton_tells_them():
    ((_, text),) = problems(LIBRARY + "sequence_batching {}")
    assert text == (
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy"
    )


def test_other_parameters_are_nobodys_business_here():
    assert problems('parameters { key: "batch_policy" value { string_value: "volume" } }') == []


def libraries(text, *files):
    config = text_format.Parse(text, ModelConfig(name="m"))
    return [each.text.partition(" is a ")[0] for each in batch_library_problems(config, files)]


def test_a_library_in_the_folder_of_the_model_or_a_version_is_refused_too():
    files = ("config.pbtxt", "1/model.onnx", "1/batchstrategy.so", "batchstrategy.so", "1/data/batchstrategy.so")
    assert libraries("dynamic_batching {}", *files) == ["1/batchstrategy.so", "batchstrategy.so"]


def test_where_triton_looks_for_no_library_none_is_seen():
    for text in ("sequence_batching {}", "ensemble_scheduling {}"):
        assert libraries(text, "batchstrategy.so") == []
