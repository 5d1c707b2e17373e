from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

import tritonpy_backend_torch
from tritonpy import DTYPES, InstanceContext, TritonError
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_torch.backend import TorchBackend
from tritonpy_testing import BackendContract

from .models import COMPILED, EAGER, LINEAR, LINEAR_IO, THREAD, AddSub, Linear, Models

ADD_SUB_IO = """
    input [{ name: "INPUT0" data_type: TYPE_INT32 dims: 16 }, { name: "INPUT1" data_type: TYPE_INT32 dims: 16 }]
    output [{ name: "OUTPUT__0" data_type: TYPE_INT32 dims: 16 }, { name: "OUTPUT__1" data_type: TYPE_INT32 dims: 16 }]
"""


class TorchContract(BackendContract):
    plugin_class = TorchBackend
    plugin = tritonpy_backend_torch
    name = "pytorch"

    def write_model(self, version_folder):
        self.build(Models(version_folder))

    def build(self, models: Models) -> None:
        raise NotImplementedError

    def bad_inputs(self, harness, random):
        return {"x": np.ones((1, 4), np.float32)}


class TestScript(TorchContract):
    config = 'name: "m" backend: "pytorch" max_batch_size: 8' + ADD_SUB_IO

    def build(self, models):
        models.script(AddSub())

    def bad_inputs(self, harness, random):
        return {"INPUT0": np.ones((1, 15), np.int32), "INPUT1": np.ones((1, 14), np.int32)}


class TestExported(TorchContract):
    config = 'name: "m" backend: "pytorch"'

    def build(self, models):
        models.linear_export()


class TestPythonClass(TorchContract):
    config = LINEAR + EAGER

    def build(self, models):
        models.python()


class TestCompiledPackage(TorchContract):
    config = (
        'name: "m" backend: "pytorch" platform: "torch_aoti" default_model_filename: "model.pt2" max_batch_size: 8 '
        + THREAD
    )

    @pytest.fixture(autouse=True)
    def _package(self, compile_module):
        self.compiled = compile_module

    def build(self, models):
        shutil.copy(self.compiled, models.at("model.pt2"))

    bad_inputs = BackendContract.bad_inputs


@pytest.fixture
def linear(models, load):
    """The harness of Linear as a TorchScript model, not yet entered."""
    models.script(Linear())
    return lambda more="": load(LINEAR + more)


def rows(*values):
    return np.array(values, np.float32)


def output(response, name="OUTPUT__0"):
    return next(tensor for tensor in response.outputs if tensor.name == name).numpy()


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def test_an_instance_may_be_a_process(linear):
    with linear(
        parameter("isolation", "process") + parameter("INTER_OP_THREAD_COUNT", "1")
    ) as harness:
        [[first], [second]] = harness.execute(
            harness.request({"x": rows([1, 2, 3])}), harness.request({"x": rows([4, 5, 6])})
        )
    assert (output(first).tolist(), output(second).tolist()) == ([[6, 12]], [[15, 30]])


def test_requests_of_a_batch_get_their_own_rows(linear):
    with linear() as harness:
        [[first], [second]] = harness.execute(
            harness.request({"x": rows([1, 2, 3], [0, 0, 1])}),
            harness.request({"x": rows([4, 5, 6])}),
        )
    assert (output(first).tolist(), output(second).tolist()) == ([[6, 12], [1, 2]], [[15, 30]])


def test_an_exported_program_without_configuration_is_served(models, load):
    models.linear_export(max=6)
    with load() as harness:
        config = harness.model.config
        [[answer]] = harness.execute(harness.request({"x": rows([1, 2, 3])}))
    assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (
        4,
        "dynamic_batching",
    )
    assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in (*config.input, *config.output)] == [
        ("x", "FP32", [3]), ("OUTPUT__0", "FP32", [2]),
    ]  # fmt: skip
    assert output(answer).tolist() == [[6, 12]]


def test_a_compiled_package_without_configuration_is_served(package, load):
    with load() as harness:
        config = harness.model.config
        array = np.arange(16, dtype=np.int32).reshape(1, 16)
        [[answer]] = harness.execute(harness.request({"ARGS[0]": array, "ARGS[1]": array}))
    assert (config.max_batch_size, config.WhichOneof("scheduling_choice")) == (
        4,
        "dynamic_batching",
    )
    assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in (*config.input, *config.output)] == [
        ("ARGS[0]", "INT32", [16]), ("ARGS[1]", "INT32", [16]), ("RESULT[0]", "INT32", [16]), ("RESULT[1]", "INT32", [16]),
    ]  # fmt: skip
    assert output(answer, "RESULT[0]").tolist() == (array * 2).tolist()
    assert not output(answer, "RESULT[1]").any()


def test_a_model_error_fails_its_batch_with_tritons_text(linear):
    with linear() as harness:
        [[answer]] = harness.execute(harness.request({"x": np.ones((1, 4), np.float32)}))
    assert answer.error.message.startswith("PyTorch execute failure: ")
    assert "mat1 and mat2 shapes cannot be multiplied" in answer.error.message


def test_both_ends_of_an_execution_are_stamped(linear):
    with linear() as harness:
        request = harness.request({"x": rows([1, 2, 3])})
        harness.execute(request)
    assert request.batch.start_ns < request.batch.input_end_ns < request.batch.infer_end_ns


def test_a_script_without_tensor_descriptions_is_not_completed(models, load, caplog):
    models.script(Linear())
    with pytest.raises(TritonError) as refused, load():
        pass
    assert (
        "at least one input, none were specified. The file does not describe them"
        in refused.value.message
    )
    assert (
        "skipping model configuration auto-complete for 'm': not supported for pytorch backend"
        in caplog.text
    )


@pytest.mark.parametrize("shared", [False, True])
def test_instances_share_weights_if_configured(linear, shared):
    with linear(parameter("ENABLE_WEIGHT_SHARING", str(shared))) as harness:
        other = TorchBackend(harness.model, InstanceContext("m_1", "CPU", 0, 1))
        shared_model = [each._instance._network for each in (harness.instance, other)]
        assert (shared_model[0] is shared_model[1]) == shared
        weights = 4 * (3 * 2 + 2)
        own = [
            sum(usage.byte_size for usage in each.memory_usage())
            for each in (harness.instance, other)
        ]
        common = sum(
            usage.byte_size for usage in TorchBackend.shared_memory_usage(harness.model.shared)
        )
        assert (own, common) == (([0, 0], weights) if shared else ([weights, weights], 0))
        other.close()


@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.05), ("fp16", 0.005)])
def test_mixed_precision_returns_the_configured_type(linear, precision, tolerance):
    x = rows([0.1234567, 0.7654321, 0.5555555])
    with linear(parameter("precision", precision)) as harness:
        [[answer]] = harness.execute(harness.request({"x": x}))
    exact = np.array([x.sum(), 2 * x.sum()])
    assert output(answer).dtype == np.float32
    assert not np.array_equal(output(answer)[0], exact)
    assert np.allclose(output(answer)[0], exact, rtol=tolerance)


def test_bfloat16_goes_in_and_out(models, load):
    models.script(AddSub())
    io = ADD_SUB_IO.replace("INT32", "BF16").replace("dims: 16", "dims: 2")
    with load('name: "m" backend: "pytorch"' + io) as harness:
        array = np.array([1.5, -2], DTYPES["BF16"])
        [[answer]] = harness.execute(harness.request({"INPUT0": array, "INPUT1": array}))
    assert output(answer).dtype == DTYPES["BF16"]
    assert output(answer).tolist() == [3, -4]


def test_close_and_unload_release_the_weights(linear):
    with linear(parameter("ENABLE_WEIGHT_SHARING", "1")) as harness:
        shared_model = harness.model.shared
        kept = harness.instance._instance._network
    assert shared_model.memory_usage() == []
    assert harness.instance.memory_usage() == []
    assert shared_model.acquire(torch.device("cpu")) is not kept


def test_a_missing_output_is_named(linear, load):
    text = LINEAR.replace("OUTPUT__0", "OUTPUT__3")
    with load(text) as harness, linear():
        [[answer]] = harness.execute(harness.request({"x": rows([1, 2, 3])}))
    assert answer.error.message == (
        "The output OUTPUT__3 in the model configuration refers to an output index which doesn't exist. This model has 1 outputs"
    )


def test_an_output_of_another_type_is_named(models, load):
    models.script(Linear())
    text = 'name: "m" backend: "pytorch" max_batch_size: 8 ' + LINEAR_IO.replace(
        'name: "OUTPUT__0" data_type: TYPE_FP32', 'name: "OUTPUT__0" data_type: TYPE_INT64'
    )
    with load(text) as harness:
        [[answer]] = harness.execute(harness.request({"x": rows([1, 2, 3])}))
    assert answer.error.message == (
        "configuration expects datatype TYPE_INT64 for output 'OUTPUT__0', model provides TYPE_FP32"
    )


@pytest.mark.parametrize(
    ("model_format", "more", "place"),
    [
        ("script", "", "thread"),
        ("export", "", "thread"),
        ("export", COMPILED, "process"),
        ("export", EAGER, "thread"),
        ("class", "", "process"),
        ("package", "", "process"),
        ("nothing", "", "thread"),
    ],
)
def test_models_that_hold_the_gil_run_in_a_process(
    models, load, compile_module, model_format, more, place
):
    writers = {
        "script": lambda: models.script(Linear()),
        "export": models.linear_export,
        "class": models.python,
        "package": lambda: shutil.copy(compile_module, models.at("model.pt2")),
        "nothing": lambda: None,
    }
    writers[model_format]()
    assert TorchBackend.isolation_of(load(LINEAR + more).model) == place
