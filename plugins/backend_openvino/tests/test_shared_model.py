from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper

from tritonpy import InvalidArgument, MemoryUsage, Tensor, TritonError, Unavailable
from tritonpy_backend_openvino.config_completion import complete_config
from tritonpy_backend_openvino.execution import Execution
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.shared_model import add_streams, import_openvino, instance_count
from tritonpy_protos.model_config_pb2 import ModelConfig

from .model_formats import write_frozen_graph, write_lite, write_paddle, write_saved_model

FIELDS = 'input { name: "x" data_type: TYPE_FP32 dims: 2 } output { name: "y" data_type: TYPE_FP32 dims: 2 }'
BY_HAND = 'name: "m" max_batch_size: 4 dynamic_batching {} ' + FIELDS


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def write_onnx(path, kind="Add", opset=17, weights=None):
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy"
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "x"], ["y"])], "g", tensors[:1], tensors[1:], weights or []
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path
    )


FORMATS = {
    "model.onnx": write_onnx,
    "model.pdmodel": write_paddle,
    "model.saved_model": write_saved_model,
    "model.pb": write_frozen_graph,
    "model.tflite": write_lite,
}


@pytest.mark.parametrize(("name", "write"), FORMATS.items(), ids=list(FORMATS))
def test_every_format_is_completed_and_computes_the_same(models, opened, name, write):
    models.path.parent.mkdir(parents=True)
    write(models.path.parent / name)
    model = opened(config())
    complete = complete_config(config(), model.signature(), 4)
    assert complete == text_format.Parse(BY_HAND, ModelConfig())
    compiled = model.acquire(complete, "CPU", ())
    [request] = compiled.create_requests()
    request.infer({0: np.array([[1, 2], [3, 4]], np.float32)})
    assert request.get_output_tensor(0).data.tolist() == [[2, 4], [6, 8]]


def test_all_instances_on_a_device_share_the_compiled_model(models, opened):
    models.add_sub()
    model = opened(config())
    complete = complete_config(config(), model.signature(), 4)
    barrier = threading.Barrier(4)

    def acquire(_number):
        barrier.wait()
        return model.acquire(complete, "CPU", ())

    with ThreadPoolExecutor(4) as pool:
        assert len({id(each) for each in pool.map(acquire, range(4))}) == 1
    assert model.acquire(complete, "CPU", (0,)) is model.acquire(complete, "CPU", (0,))
    assert model.acquire(complete, "CPU", (0,)) is not model.acquire(complete, "CPU", ())


@pytest.fixture
def compiled(models, opened):
    """`compiled(text, parameter=…)`: the model y = x + x with two columns."""

    def make(text="", cores=(), kind="CPU", options=None, **parameters):
        write_onnx(models.folder / "1" / "model.onnx")
        whole = config("max_batch_size: 4 " + FIELDS + text)
        return opened(whole, options, **parameters).acquire(whole, kind, cores)

    return make


def test_settings_reach_openvino(compiled):
    found = compiled(
        PERFORMANCE_HINT="THROUGHPUT", INFERENCE_NUM_THREADS="2", NUM_STREAMS="2", HINT_BF16="YES"
    ).model
    names = ("PERFORMANCE_HINT", "INFERENCE_NUM_THREADS", "NUM_STREAMS", "INFERENCE_PRECISION_HINT")
    hint, threads, streams, precision = (found.get_property(name) for name in names)
    assert (hint, threads, streams) == ("THROUGHPUT", 2, 2)
    assert precision.get_type_name() in {
        "bf16",
        "f32",
    }  # only a hint: unsupported precisions are ignored


def test_the_requests_keep_the_device_busy(compiled):
    assert compiled(PERFORMANCE_HINT="LATENCY").requests == 1
    assert compiled(NUM_STREAMS="2", INFERENCE_NUM_THREADS="2").requests == 2
    assert (
        compiled("instance_group { count: 2 }", NUM_STREAMS="2", INFERENCE_NUM_THREADS="2").requests
        == 1
    )


def test_instances_get_a_stream_each_unless_configured_otherwise(compiled):
    two = "instance_group { count: 2 }"
    found = compiled(two, INFERENCE_NUM_THREADS="1")
    assert (
        found.model.get_property("NUM_STREAMS"),
        found.model.get_property("INFERENCE_NUM_THREADS"),
    ) == (2, 2)
    assert found.requests == 1
    assert compiled(two, PERFORMANCE_HINT="LATENCY").model.get_property("NUM_STREAMS") == 1
    assert (
        compiled(two, isolation="process").model.get_property("NUM_STREAMS") == 1
    )  # each process has its own compiled model
    assert compiled(two, NUM_STREAMS="1").model.get_property("NUM_STREAMS") == 1


@pytest.mark.parametrize(
    ("given", "instances", "expected"),
    [
        ({}, 1, {}), ({}, 3, {"NUM_STREAMS": 3}), ({"INFERENCE_NUM_THREADS": 2}, 1, {"INFERENCE_NUM_THREADS": 2}),
        ({"INFERENCE_NUM_THREADS": 2}, 3, {"NUM_STREAMS": 3, "INFERENCE_NUM_THREADS": 6}),
        ({"NUM_STREAMS": 2, "INFERENCE_NUM_THREADS": 2}, 3, {"NUM_STREAMS": 2, "INFERENCE_NUM_THREADS": 2}),
        ({"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 2}, 3, {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 2}),
    ],
)  # fmt: skip
def test_each_instance_has_the_configured_threads(given, instances, expected):
    assert add_streams(given, instances) == expected


def test_a_pinned_instance_has_a_thread_per_core(compiled):
    assert compiled(cores=(0,)).model.get_property("INFERENCE_NUM_THREADS") == 1
    assert (
        compiled(cores=(0,), INFERENCE_NUM_THREADS="2").model.get_property("INFERENCE_NUM_THREADS")
        == 2
    )


@pytest.mark.parametrize(
    "device", ["AUTO", "AUTO:CPU", "HETERO:CPU", "MULTI:CPU", "BATCH:CPU", "cpu"]
)
def test_every_virtual_device_computes(compiled, device):
    found = compiled(
        TARGET_DEVICE=device, NUM_STREAMS="2", INFERENCE_NUM_THREADS="2", precision="fp32"
    )
    request = found.create_requests()[0]
    request.infer({0: np.ones((3, 2), np.float32)})
    assert request.get_output_tensor(0).data.tolist() == [[2, 2]] * 3
    assert (found.requests, found.model.get_property("EXECUTION_DEVICES")) == (2, ["CPU"])


def test_an_instance_of_kind_model_leaves_the_device_to_openvino(compiled):
    assert compiled(kind="MODEL").model.get_property("EXECUTION_DEVICES") == ["CPU"]


def test_an_unknown_device_fails_the_load_with_the_available_ones(compiled):
    with pytest.raises(
        InvalidArgument,
        match=r"^unable to load model 'm', TARGET_DEVICE AUTO:TPU,CPU names the unknown device 'TPU', available devices are: CPU",
    ):
        compiled(TARGET_DEVICE="AUTO:TPU,CPU")


def test_nvidias_devices_are_refused_in_the_words_of_triton(compiled):
    with pytest.raises(InvalidArgument) as caught:
        compiled(kind="GPU")
    assert (
        caught.value.message
        == "unable to load model 'm', Triton OpenVINO backend supports only Kind CPU and AUTO"
    )


def test_a_precision_that_the_device_lacks_fails_the_load(compiled):
    has = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    for precision in ("fp32", "bf16", "fp16"):
        if precision.upper() in has:
            compiled(precision=precision)
        else:
            with pytest.raises(
                InvalidArgument, match=f"device CPU does not support {precision}, only .*fp32"
            ):
                compiled(precision=precision)


def test_the_weights_are_counted(models, opened):
    models.map(
        "FP32",
        [-1, 2],
        lambda node: openvino.opset13.matmul(node, np.ones((2, 3), np.float32), False, False),
    )
    fields = (
        FIELDS.replace('"x"', '"IN"').replace('"y"', '"OUT"').replace("dims: 2 }", "dims: -1 }")
    )
    whole = config("max_batch_size: 4 " + fields.replace("-1", "2", 1).replace("-1", "3"))
    model = opened(whole)
    assert list(model.memory_usage()) == []
    model.acquire(whole, "CPU", ())
    assert list(model.memory_usage()) == [MemoryUsage("CPU", 0, 24)]
    model.close()
    assert list(model.memory_usage()) == []


def test_a_compiled_model_is_kept_in_the_folder_that_the_operator_names(compiled, tmp_path):
    options = OpenVinoOptions(cache_dir=str(tmp_path / "cache"))
    assert not compiled(options=options).model.get_property("LOADED_FROM_CACHE")
    kept = list((tmp_path / "cache").glob("*.blob"))
    assert len(kept) == 1
    again = compiled(options=options)
    assert again.model.get_property("LOADED_FROM_CACHE")
    assert list((tmp_path / "cache").glob("*.blob")) == kept
    request = again.create_requests()[0]
    request.infer({0: np.ones((1, 2), np.float32)})
    assert request.get_output_tensor(0).data.tolist() == [[2, 2]]


def lower(models):
    """OUT is IN in lower case, by an operator that OpenVINO itself lacks.

    It is written by a process with the operator library.
    """
    script = f"""
import openvino as ov
from openvino import opset13 as ops
from openvino_tokenizers import _get_factory
make = _get_factory().create
source = ops.parameter(ov.PartialShape([-1]), ov.Type.string, name="IN")
source.output(0).set_names({{"IN"}})
made = make("StringTensorPack", make("CaseFold", make("StringTensorUnpack", [source.output(0)]).outputs()).outputs())
made.output(0).set_names({{"OUT"}})
ov.save_model(ov.Model([ops.result(made)], [source]), "{models.path}")
"""
    models.path.parent.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def flaws():
    def truncated_xml(models):
        path = models.copied("FP32", [-1, 2])
        path.write_bytes(path.read_bytes()[:200])

    def truncated_weights(models):
        weights = np.ones((2, 2), np.float32)
        models.map(
            "FP32", [-1, 2], lambda node: openvino.opset13.matmul(node, weights, False, False)
        )
        models.path.with_suffix(".bin").write_bytes(b"1")

    def no_weights(models):
        truncated_weights(models)
        models.path.with_suffix(".bin").unlink()

    def no_onnx(models):
        (models.folder / "1").mkdir()
        (models.folder / "1" / "model.onnx").write_bytes(b"this is no model")

    def wrong_opset(models):
        path = models.copied("FP32", [-1, 2])
        path.write_text(path.read_text().replace('version="opset', 'version="opset99'))

    def custom_operator(models):
        write_onnx(models.folder / "1" / "model.onnx", kind="NobodyKnowsThis")

    return [truncated_xml, truncated_weights, no_weights, no_onnx, custom_operator, wrong_opset]


@pytest.mark.parametrize("spoil", flaws(), ids=lambda each: each.__name__)
def test_a_broken_model_fails_with_openvinos_text(models, opened, spoil):
    spoil(models)
    with pytest.raises(
        TritonError,
        match=r"(?s)^openvino error in reading model : .*\S \(.*/1/model\.(xml|onnx)\)$",
    ) as caught:
        opened(config("max_batch_size: 4 " + FIELDS)).signature()
    print(caught.value.message)


def test_a_missing_file_is_named(opened, models):
    with pytest.raises(
        Unavailable, match=rf"^unable to find '{models.folder}/1/model.xml' for model 'm'$"
    ):
        opened(config()).signature()


def test_a_missing_library_of_operators_is_named(opened):
    with pytest.raises(
        TritonError, match=r"(?s)^openvino error in  loading custom CPU extensions : .*nowhere\.so"
    ):
        opened(config(), CPU_EXTENSION_PATH="/nowhere.so")


def test_an_operator_library_is_loaded_only_for_its_model(models, opened):
    library = str(
        next(Path(find_spec("openvino_tokenizers").origin).parent.rglob("libopenvino_tokenizers.*"))
    )
    lower(models)
    text = """input { name: "IN" data_type: TYPE_STRING dims: -1 } output { name: "OUT" data_type: TYPE_STRING dims: -1 }"""
    compiled = opened(config(text), CPU_EXTENSION_PATH=library).acquire(config(text), "CPU", ())
    [request] = compiled.create_requests()
    given = Tensor.from_numpy("IN", np.array([b"ABC", "Éa".encode(), b""], object))
    running = Execution(config(text), compiled).prepare([given], 1)
    running.fill(request)
    request.start_async()
    request.wait()
    assert running.outputs()["OUT"].strings() == [b"abc", "éa".encode(), b""]
    with pytest.raises(TritonError, match="from unsupported opset: extension"):
        opened(config(text)).signature()


def test_batching_on_a_model_without_batching_is_rejected(models, opened):
    models.map(
        "FP32",
        [6, 2],
        lambda node: openvino.opset13.reshape(node, np.array([3, 4]), special_zero=False),
    )
    fields = FIELDS.replace('"x"', '"IN"').replace('"y"', '"OUT"')
    whole = config(
        "max_batch_size: 4 " + fields.replace("dims: 2 }", "dims: 4 }").replace("4", "2", 1)
    )
    with pytest.raises(
        TritonError, match="model 'm', tensor 'OUT': the model expects 2 dimensions"
    ):
        opened(whole).acquire(whole, "CPU", ())


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 1), ("instance_group { count: 3 }", 3), ("instance_group { count: 2 } instance_group { kind: KIND_MODEL }", 3),
     ("instance_group { count: 2 } instance_group { count: 2 passive: true }", 2)],
)  # fmt: skip
def test_instances_are_counted(text, count):
    assert instance_count(config(text)) == count


def test_a_failed_import_gives_installation_instructions(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(
        Unavailable, match=r"^OpenVINO cannot be imported .* tritonpy-backend-openvino$"
    ):
        import_openvino()
