from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritonpy_backend_onnx
from tritonpy import DTYPES, InstanceContext, TritonError
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_onnx.backend import OnnxRuntimeBackend
from tritonpy_backend_onnx.providers import ProviderDevice
from tritonpy_testing import BackendContract, BackendHarness, model_config


class OnnxContract(BackendContract):
    plugin_class = OnnxRuntimeBackend
    plugin = tritonpy_backend_onnx
    name = "onnxruntime"

    @pytest.fixture(autouse=True)
    def _models(self, models: Any) -> None:
        self.models = models

    def build(self) -> None:
        raise NotImplementedError

    def write_model(self, version_folder: Path) -> None:
        self.models.path = version_folder / "model.onnx"
        self.build()


class TestNumbers(OnnxContract):
    config = 'name: "m" backend: "onnxruntime" max_batch_size: 8'

    def build(self) -> None:
        self.models.add_sub()

    def bad_inputs(self, harness, random):
        return {name: np.ones((1, 15), np.int32) for name in ("INPUT0", "INPUT1")}


class TestTexts(OnnxContract):
    config = 'name: "m" backend: "onnxruntime" max_batch_size: 8'

    def build(self) -> None:
        self.models.identity("BYTES", ["batch", 2])

    def bad_inputs(self, harness, random):
        return {"IN": np.full((1, 3), b"x", object)}

    def make_inputs(self, harness, random, rows):
        words = ["", "é", "digit", "\N{SNOWMAN}"]
        return {
            "IN": np.array(
                [[random.choice(words).encode() for _ in range(2)] for _ in range(rows)], object
            )
        }


class TestBfloat16(OnnxContract):
    config = 'name: "m" backend: "onnxruntime" max_batch_size: 8'

    def build(self) -> None:
        self.models.identity("BF16", ["batch", 2])

    def bad_inputs(self, harness, random):
        return {"IN": np.ones((1, 3), DTYPES["BF16"])}


class TestUnbatched(OnnxContract):
    config = 'name: "m" backend: "onnxruntime"'

    def build(self) -> None:
        self.models.identity("FP64", [2, 3])

    def bad_inputs(self, harness, random):
        return {"IN": np.ones((2, 4))}


@pytest.fixture
def load(models):
    def make(text="", **options):
        config = model_config('name: "m" backend: "onnxruntime" ' + text)
        return BackendHarness(OnnxRuntimeBackend, config, models.folder, options)

    return make


def array(value, rows=1):
    return np.full((rows, 16), value, np.int32)


def output(response, name):
    return next(tensor for tensor in response.outputs if tensor.name == name).numpy()


def test_a_model_without_configuration_is_served(models, load):
    models.add_sub()
    with load() as harness:
        config = harness.model.config
        assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (
            4,
            "dynamic_batching",
        )
        assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in config.input] == [
            ("INPUT0", "INT32", [16]), ("INPUT1", "INT32", [16]),
        ]  # fmt: skip
        [[answer]] = harness.execute(harness.request({"INPUT0": array(7), "INPUT1": array(2)}))
    assert output(answer, "OUTPUT0").tolist() == array(9).tolist()
    assert output(answer, "OUTPUT1").tolist() == array(5).tolist()


def test_the_servers_default_batch_size_is_taken(models, load):
    models.add_sub()
    harness = load()
    harness.model.default_max_batch_size = 32
    with harness:
        assert harness.model.config.max_batch_size == 32


def test_requests_of_a_batch_get_their_own_rows_and_outputs(models, load):
    models.add_sub()
    with load("max_batch_size: 8") as harness:
        requests = [
            harness.request({"INPUT0": array(1, 2), "INPUT1": array(1, 2)}),
            harness.request({"INPUT0": array(5), "INPUT1": array(3)}, ["OUTPUT1"]),
        ]
        [first], [second] = harness.execute(*requests)
    assert output(first, "OUTPUT0").tolist() == array(2, 2).tolist()
    assert [tensor.name for tensor in second.outputs] == ["OUTPUT1"]
    assert output(second, "OUTPUT1").tolist() == array(2).tolist()


def test_both_ends_of_an_execution_are_stamped(models, load):
    models.add_sub()
    with load() as harness:
        request = harness.request({"INPUT0": array(1), "INPUT1": array(1)})
        harness.execute(request)
    assert request.batch.start_ns < request.batch.input_end_ns < request.batch.infer_end_ns


def test_an_onnxruntime_error_fails_the_batch_with_tritons_text(models, load):
    models.add_sub()
    with load() as harness:
        [[answer]] = harness.execute(
            harness.request(
                {"INPUT0": np.ones((1, 3), np.int32), "INPUT1": np.ones((1, 3), np.int32)}
            )
        )
    assert answer.error.message.startswith(
        "onnx runtime error 2: Got invalid dimensions for input: INPUT"
    )


def test_an_output_that_is_not_configured_is_not_computed(models, load):
    models.add_sub()
    with load('output { name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 }') as harness:
        [[answer]] = harness.execute(harness.request({"INPUT0": array(7), "INPUT1": array(2)}))
    assert [tensor.name for tensor in answer.outputs] == ["OUTPUT1"]


def test_an_optional_input_may_be_left_out(models, load):
    models.with_default()
    text = """
        input [{ name: "IN" data_type: TYPE_FP32 dims: 2 }, { name: "BIAS" data_type: TYPE_FP32 dims: 2 optional: true }]
        output { name: "OUT" data_type: TYPE_FP32 dims: 2 }"""
    with load(text) as harness:
        one = np.ones(2, np.float32)
        [[without]] = harness.execute(harness.request({"IN": one}))
        [[given]] = harness.execute(harness.request({"IN": one, "BIAS": one}))
    assert output(without, "OUT").tolist() == [11, 11]
    assert output(given, "OUT").tolist() == [2, 2]


def test_a_scalar_is_served_with_one_dimension(models, load):
    models.identity("FP32", [])
    with load() as harness:
        [[answer]] = harness.execute(harness.request({"IN": np.array([3], np.float32)}))
    assert output(answer, "OUT").tolist() == [3]


def test_a_configuration_that_contradicts_the_model_fails_the_load(models, load):
    models.add_sub()
    text = """
        input [{ name: "INPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }]
        output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 } max_batch_size: 4"""
    with pytest.raises(TritonError) as caught, load(text):
        pass
    assert caught.value.message == (
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'INPUT0', model provides TYPE_INT32"
    )


def test_a_complete_configuration_is_unchanged(models, load):
    models.identity("FP32", ["batch", 2])
    text = """
        input { name: "IN" data_type: TYPE_FP32 dims: [-1, 2] } output { name: "OUT" data_type: TYPE_FP32 dims: [-1, 2] }"""
    with load(text) as harness:
        assert harness.model.config.max_batch_size == 0
        assert harness.model.config.WhichOneof("scheduling_choice") is None


def test_instances_on_a_device_run_concurrently_in_one_session(models, load):
    models.add_sub()
    with load("max_batch_size: 8") as harness:
        second = OnnxRuntimeBackend(harness.model, InstanceContext("m_1", "CPU", 0, 1))
        assert second.model.shared is harness.model.shared
        with ThreadPoolExecutor(1) as pool:
            together = [
                pool.submit(
                    harness.execute, harness.request({"INPUT0": array(n), "INPUT1": array(1)})
                )
                for n in range(50)
            ]
            for future, number in zip(together, range(50), strict=True):
                [[answer]] = future.result()
                assert output(answer, "OUTPUT0").tolist() == array(number + 1).tolist()
        second.close()


def test_unloading_releases_the_sessions(models, load):
    models.add_sub()
    with load() as harness:
        sessions = harness.model.shared
        kept = sessions.acquire(ProviderDevice("CPU", 0))
    assert sessions.acquire(ProviderDevice("CPU", 0)) is not kept
