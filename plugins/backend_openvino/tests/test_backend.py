from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import pytest
from openvino import opset13 as ops

import tritonpy_backend_openvino
from tritonpy import DTYPES, MemoryUsage, TritonError
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy.metrics import FailureReason
from tritonpy_backend_openvino.backend import OpenVinoBackend
from tritonpy_testing import BackendContract, BackendHarness, model_config


class OpenVinoContract(BackendContract):
    plugin_class = OpenVinoBackend
    plugin = tritonpy_backend_openvino
    name = "openvino"

    @pytest.fixture(autouse=True)
    def _models(self, models: Any) -> None:
        self.models = models

    def build(self) -> None:
        raise NotImplementedError

    def write_model(self, version_folder: Any) -> None:
        self.models.path = version_folder / "model.xml"
        self.build()


class TestNumbers(OpenVinoContract):
    config = 'name: "m" backend: "openvino" max_batch_size: 8'

    def build(self) -> None:
        self.models.add_sub()

    def bad_inputs(self, harness, random):
        return {name: np.ones((1, 15), np.int32) for name in ("INPUT0", "INPUT1")}


class TestSeveralRequestsAtOnce(TestNumbers):
    config = """name: "m" backend: "openvino" max_batch_size: 8
        parameters { key: "PERFORMANCE_HINT" value { string_value: "THROUGHPUT" } }
        parameters { key: "NUM_STREAMS" value { string_value: "2" } }"""


class TestTexts(OpenVinoContract):
    config = 'name: "m" backend: "openvino" max_batch_size: 8'

    def build(self) -> None:
        self.models.same("BYTES", [-1, 2])

    def bad_inputs(self, harness, random):
        return {"IN": np.full((1, 3), b"x", object)}

    def make_inputs(self, harness, random, rows):
        words = ["", "é", "digit", "\N{SNOWMAN}"]
        return {
            "IN": np.array(
                [[random.choice(words).encode() for _ in range(2)] for _ in range(rows)], object
            )
        }


class TestBfloat16(OpenVinoContract):
    config = 'name: "m" backend: "openvino" max_batch_size: 8'

    def build(self) -> None:
        self.models.copied("BF16", [-1, 2])

    def bad_inputs(self, harness, random):
        return {"IN": np.ones((1, 3), DTYPES["BF16"])}


class TestUnbatched(OpenVinoContract):
    config = 'name: "m" backend: "openvino"'

    def build(self) -> None:
        self.models.copied("FP64", [2, 3])

    def bad_inputs(self, harness, random):
        return {"IN": np.ones((2, 4))}


class TestIsolated(TestNumbers):
    config = """name: "m" backend: "openvino" max_batch_size: 8
        parameters { key: "isolation" value { string_value: "process" } }
        parameters { key: "PERFORMANCE_HINT" value { string_value: "THROUGHPUT" } }"""


@pytest.fixture
def load(models):
    def make(text="", **options):
        return BackendHarness(
            OpenVinoBackend,
            model_config('name: "m" backend: "openvino" ' + text),
            models.folder,
            options,
        )

    return make


def parameters(**values):
    return "".join(
        f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in values.items()
    )


TWO = parameters(NUM_STREAMS="2", INFERENCE_NUM_THREADS="2")


NO_BATCH = """input { name: "IN" data_type: TYPE_FP32 dims: -1 } output { name: "OUT" data_type: TYPE_INT64 dims: [1, -1] }"""


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


@pytest.mark.parametrize("text", ["", TWO], ids=["one", "two"])
def test_both_ends_of_an_execution_are_stamped(models, load, text):
    models.add_sub()
    with load(text) as harness:
        request = harness.request({"INPUT0": array(1), "INPUT1": array(1)})
        batch = []
        respond = harness.recorder.respond
        harness.recorder.respond = lambda requests, responses: (
            batch.append(requests[0].batch),
            respond(requests, responses),
        )
        harness.execute(request)
    assert batch[0].start_ns < batch[0].input_end_ns < batch[0].infer_end_ns


def placed(models):
    """OUT has ones in row ROW of four."""
    row = models.parameter("ROW", "INT64", [1])
    rows = [
        ops.constant(np.full((count, 2), value, np.float32)) for count, value in ((4, 0), (1, 1))
    ]
    made = ops.scatter_update(rows[0], row, rows[1], ops.constant(np.array(0)))
    models.save([models.result("OUT", made)], [row])


@pytest.mark.parametrize("text", [parameters(INFERENCE_NUM_THREADS="1"), TWO], ids=["one", "two"])
def test_a_device_failure_fails_its_batch_and_the_next_one_runs(models, load, text):
    placed(models)
    with load(text) as harness:
        for _ in range(3):
            [[answer]] = harness.execute(harness.request({"ROW": np.array([9])}))
            assert answer.error.message.startswith("openvino error in running inference : ")
            assert answer.error.message.endswith(
                "have indices value that points to non-existing output tensor element"
            )
            assert answer.error.reason is FailureReason.BACKEND
            [[answer]] = harness.execute(harness.request({"ROW": np.array([1])}))
            assert output(answer, "OUT").tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]


def test_a_failed_start_fails_its_batch(models, load, monkeypatch):
    models.add_sub()

    def refuse(_fill, _finish):
        raise RuntimeError("Infer Request is busy")

    with load() as harness:
        monkeypatch.setattr(harness.instance._requests, "run", refuse)
        [[answer]] = harness.execute(harness.request({"INPUT0": array(1), "INPUT1": array(1)}))
    assert (
        answer.error.message == "openvino error in running async inference : Infer Request is busy"
    )


def test_a_result_may_be_empty(models, load):
    models.map("FP32", [-1], lambda node: ops.non_zero(node, "i64"))
    with load(NO_BATCH) as harness:
        for values, found in (([0, 0], (1, 0)), ([0, 3], (1, 1)), ([0, 0], (1, 0)), ([], (1, 0))):
            [[answer]] = harness.execute(harness.request({"IN": np.array(values, np.float32)}))
            assert output(answer, "OUT").shape == found


@pytest.mark.parametrize(
    "text", [TWO, parameters(INFERENCE_NUM_THREADS="1")], ids=["two", "one thread"]
)
def test_unsupported_shapes_do_not_reach_the_device(models, load, text):
    models.map("FP32", [-1, -1], lambda node: ops.relu(ops.reshape(node, np.array([-1, 4]), False)))
    with load("max_batch_size: 4" + text) as harness:
        for _ in range(3):
            [[answer]] = harness.execute(harness.request({"IN": np.ones((1, 3), np.float32)}))
            assert answer.error.message.startswith("openvino error in setting tensor data : ")
            [[answer]] = harness.execute(harness.request({"IN": np.ones((1, 4), np.float32)}))
            assert output(answer, "OUT").tolist() == [[1, 1, 1, 1]]


def test_each_infer_request_returns_its_own_results(models, load):
    models.add_sub()
    with load("max_batch_size: 8" + TWO) as harness:
        assert harness.model.shared.acquire(harness.model.config, "CPU", ()).requests == 2
        for number in range(50):
            [[answer]] = harness.execute(
                harness.request({"INPUT0": array(number), "INPUT1": array(1)})
            )
            assert output(answer, "OUTPUT0").tolist() == array(number + 1).tolist()


def test_outputs_are_not_copied(models, load):
    models.add_sub()
    with load() as harness:
        [[answer]] = harness.execute(harness.request({"INPUT0": array(1), "INPUT1": array(1)}))
        data = answer.outputs[0].data
        while isinstance(data, np.ndarray):
            data = data.base
    assert isinstance(data, openvino.Tensor)


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


def test_an_invalid_parameter_fails_the_load(models, load):
    models.add_sub()
    with pytest.raises(
        TritonError,
        match="expected the parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got x",
    ):
        load(parameters(NUM_STREAMS="x")).__enter__()


def test_the_memory_of_the_weights_is_reported(models, load):
    models.map(
        "FP32", [-1, 4], lambda node: ops.matmul(node, np.ones((4, 2), np.float32), False, False)
    )
    with load() as harness:
        assert list(OpenVinoBackend.shared_memory_usage(harness.model.shared)) == [
            MemoryUsage("CPU", 0, 32)
        ]


def test_unloading_releases_compiled_models(models, load):
    models.add_sub()
    with load() as harness:
        shared = harness.model.shared
        assert shared.memory_usage()
    assert not shared.memory_usage()
