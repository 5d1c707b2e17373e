from __future__ import annotations

from google.protobuf import json_format

from tritonpy_frontend_http.config_json import config_to_dict
from tritonpy_protos.model_config_pb2 import ModelConfig


def test_defaults_are_there_and_unset_messages_are_not():
    found = config_to_dict(ModelConfig(name="m"))
    assert (found["name"], found["max_batch_size"], found["input"], found["parameters"]) == ("m", 0, [], {})
    assert list(found)[:3] == ["name", "platform", "backend"]
    assert "version_policy" not in found
    assert "dynamic_batching" not in found


def test_64_bit_integers_are_numbers_and_enums_are_names():
    config = ModelConfig(name="m")
    given = config.input.add()
    given.name, given.data_type = "X", 11
    given.dims.extend([-1, 2**40])
    config.dynamic_batching.max_queue_delay_microseconds = 5
    config.parameters["k"].string_value = "v"
    found = config_to_dict(config)
    assert found["input"][0]["dims"] == [-1, 2**40]
    assert (found["input"][0]["data_type"], found["input"][0]["format"]) == ("TYPE_FP32", "FORMAT_NONE")
    assert found["dynamic_batching"]["max_queue_delay_microseconds"] == 5
    assert found["parameters"] == {"k": {"string_value": "v"}}


def test_protobuf_reads_it_back():
    config = ModelConfig(name="m", backend="b", max_batch_size=4)
    config.version_policy.latest.num_versions = 2
    config.instance_group.add(name="g", count=2, gpus=[0, 1])
    assert json_format.ParseDict(config_to_dict(config), ModelConfig()) == config
