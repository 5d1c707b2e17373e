from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.normalization import normalize
from tritonpy_config.validate import validate
from tritonpy_protos.model_config_pb2 import ModelConfig

VALID = """
    name: "m" backend: "b" max_batch_size: 4 dynamic_batching {}
    input { name: "x" data_type: TYPE_FP32 dims: 3 } output { name: "y" data_type: TYPE_FP32 dims: 3 }
"""


def problems(text, gpus=(), **options):
    config = normalize(text_format.Parse(text, ModelConfig()), gpus)
    return [str(each) for each in validate(config, "m", gpus, **options)]


def test_a_valid_normalized_configuration_has_no_problems():
    assert problems(VALID) == []
    assert problems(VALID, gpus=[0, 1]) == []


def test_every_rule_reports_and_identity_comes_first():
    text = """
        name: "n" backend: "onnxruntime" max_batch_size: -1
        input { name: "x" dims: 3 } batch_input { data_type: TYPE_INT32 source_input: "z" }
        sequence_batching {
            direct { minimum_slot_utilization: 2 }
            state { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: 3 initial_state { data_type: TYPE_FP32 dims: 3 } }
        }
        response_cache { enable: true } model_metrics { metric_control {} }
        instance_group { gpus: 3 }
        model_warmup { batch_size: 1 inputs { key: "x" value { dims: 1 } } }
        parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "rules.so" } }
    """
    found = [problem.split(":")[0] for problem in problems(text)]
    assert found == [
        "name",
        "platform",
        "max_batch_size",
        "sequence_batching.direct.minimum_slot_utilization",
        "response_cache.enable",
        "model_metrics.metric_control[0]",
        "model_metrics.metric_control[0]",
        "instance_group[0].gpus",
        "input[0]",
        "batch_input[0].source_input[0]",
        "sequence_batching.state[0].initial_state[0]",
        'model_warmup[0].inputs["x"]',
        'parameters["TRITON_BATCH_STRATEGY_PATH"]',
    ]


@pytest.mark.parametrize("broken", ["input { dims: 3 }", "output { dims: 3 }", "batch_input {}"])
def test_tensors_are_not_checked_before_completion(broken):
    assert problems(VALID + broken)
    assert problems(VALID + broken, tensors=False) == []
