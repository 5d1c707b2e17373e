from __future__ import annotations

from google.protobuf import text_format

from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_residency.demand import PROCESS, estimate

FILES = {"1/weights": 100, "1/more/tokens": 20, "2/weights": 7, "config.pbtxt": 1000}


def config(text):
    return text_format.Parse(text, ModelConfig())


def test_a_version_takes_its_files_once_on_the_host_however_many_instances_it_has():
    instances = config("instance_group { count: 3 kind: KIND_CPU }")
    assert estimate(instances, [1], FILES, processes=False) == {"cpu": 120}
    assert estimate(instances, [1, 2], FILES, processes=False) == {"cpu": 127}


def test_each_gpu_with_instances_takes_the_files_once():
    instances = config(
        "instance_group { count: 2 kind: KIND_GPU gpus: [0, 1] } instance_group { count: 1 kind: KIND_CPU }"
    )
    assert estimate(instances, [1], FILES, processes=False) == {"0": 120, "1": 120, "cpu": 120}


def test_each_process_needs_the_files_and_its_own_overhead():
    instances = config("instance_group { count: 2 kind: KIND_GPU gpus: [0, 1] }")
    assert estimate(instances, [1], FILES, processes=True) == {
        "0": 240,
        "1": 240,
        "cpu": 4 * PROCESS,
    }


def test_a_model_without_instances_takes_nothing():
    assert estimate(config(""), [1], FILES, processes=False) == {}
