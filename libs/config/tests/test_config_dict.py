from __future__ import annotations

import json
import math
from typing import Any

from google.protobuf import json_format
from hypothesis import given

from tritonpy_config.config_dict import config_to_dict
from tritonpy_config.model_json import read_config_json
from tritonpy_config.model_text import read_config_text
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelMetrics

from .config_messages import model_configs

PLAIN = """
name: "plain" backend: "python"
version_policy { latest { num_versions: 1 } }
input { name: "IN" data_type: TYPE_FP32 dims: 16 }
output { name: "OUT" data_type: TYPE_FP32 dims: 16 }
optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } }
instance_group { name: "plain" kind: KIND_CPU count: 1 }
default_model_filename: "model.py"
"""
# the response of Triton 2.51 to GET /v2/models/plain/config
TRITONS_ANSWER = (
    '{"name":"plain","platform":"","backend":"python","runtime":"","version_policy":{"latest":{"num_versions":1}},'
    '"max_batch_size":0,"input":[{"name":"IN","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[16],'
    '"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],'
    '"output":[{"name":"OUT","data_type":"TYPE_FP32","dims":[16],"label_filename":"","is_shape_tensor":false,'
    '"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":'
    '"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},'
    '"gather_kernel_buffer_threshold":0,"eager_batching":false},"instance_group":[{"name":"plain","kind":"KIND_CPU",'
    '"count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],'
    '"default_model_filename":"model.py","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]}'
)


def printed(text: str) -> dict[str, Any]:
    reading = read_config_text(text)
    assert reading.problems == []
    return config_to_dict(reading.config)


def test_a_configuration_prints_byte_for_byte_as_in_triton() -> None:
    assert json.dumps(printed(PLAIN), separators=(",", ":")) == TRITONS_ANSWER


def test_the_selected_scheduler_is_printed_with_its_map() -> None:
    dynamic = printed(
        "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615"
        " priority_queue_policy { key: 1 value { timeout_action: DELAY } } }"
    )
    assert "sequence_batching" not in dynamic
    assert dynamic["dynamic_batching"] == {
        "preferred_batch_size": [],
        "max_queue_delay_microseconds": 18446744073709551615,
        "preserve_ordering": False,
        "priority_levels": 0,
        "default_priority_level": 0,
        "priority_queue_policy": {
            "1": {
                "timeout_action": "DELAY",
                "default_timeout_microseconds": 0,
                "allow_timeout_override": False,
                "max_queue_size": 0,
            }
        },
    }


def test_32_bit_floats_are_printed_in_their_shortest_form() -> None:
    direct = printed("sequence_batching { direct { minimum_slot_utilization: 0.3 } }")[
        "sequence_batching"
    ]["direct"]
    assert json.dumps(direct["minimum_slot_utilization"]) == "0.3"


def test_whole_numbers_are_printed_without_a_decimal_point() -> None:
    direct = printed("sequence_batching { direct { minimum_slot_utilization: 1.0 } }")[
        "sequence_batching"
    ]["direct"]
    assert json.dumps(direct["minimum_slot_utilization"]) == "1"


def test_64_bit_integers_are_numbers_everywhere() -> None:
    state = printed("sequence_batching { state { initial_state { dims: 1 } } }")[
        "sequence_batching"
    ]["state"][0]
    assert state["initial_state"][0]["dims"] == [1]


def test_values_without_a_json_form_are_strings() -> None:
    buckets = [math.nan, math.inf, -math.inf]
    control = ModelMetrics.MetricControl(histogram_options={"buckets": buckets})
    config = ModelConfig(model_metrics=ModelMetrics(metric_control=[control]))
    printed = config_to_dict(config)["model_metrics"]["metric_control"][0]["histogram_options"][
        "buckets"
    ]
    assert printed == ["NaN", "Infinity", "-Infinity"]


def test_an_enum_number_without_a_name_is_printed_as_a_number() -> None:
    assert config_to_dict(ModelConfig(input=[{"data_type": 99}]))["input"][0]["data_type"] == 99


@given(model_configs())
def test_the_output_is_json_with_the_same_meaning(config: ModelConfig) -> None:
    text = json.dumps(config_to_dict(config))
    assert json_format.Parse(text, ModelConfig()) == config
    assert read_config_json(text).config == config
