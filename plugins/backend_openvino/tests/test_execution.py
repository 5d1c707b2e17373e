from __future__ import annotations

import numpy as np
import openvino
import pytest
from google.protobuf import text_format
from openvino import opset13 as ops

from tritonpy import DTYPES, Internal, Tensor, TritonError
from tritonpy_backend_openvino.execution import Execution
from tritonpy_protos.model_config_pb2 import ModelConfig

NUMBERS = [
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BF16",
]
SHAPES = [(2, 3), (0, 3), (1, 0), (2, 3, 0, 4)]
OPEN = [(shape, [-1] * len(shape)) for shape in SHAPES]


def values(datatype, shape):
    count = int(np.prod(shape))
    if datatype == "BYTES":
        return np.array(
            [f"é{number}".encode() for number in range(count)] or np.empty(0), object
        ).reshape(shape)
    return np.arange(count).astype(DTYPES[datatype]).reshape(shape)


@pytest.fixture
def run(models, opened):
    """`run(config, arrays)`: the outputs of one batch."""

    def execute(arrays, text="", **parameters):
        config = text_format.Parse('name: "m" ' + text, ModelConfig())
        compiled = opened(config, **parameters).acquire(config, "CPU", ())
        [request] = compiled.create_requests()
        tensors = [Tensor.from_numpy(name, array) for name, array in arrays.items()]
        running = Execution(config, compiled).prepare(tensors, len(next(iter(arrays.values()))))
        running.fill(request)
        request.start_async()
        request.wait()
        return running.outputs()

    return execute


def described(kind, dims, out=None):
    sizes = " ".join(f"dims: {dim}" for dim in dims)
    of_out = sizes if out is None else " ".join(f"dims: {dim}" for dim in out)
    kind = kind.replace("BYTES", "STRING")
    return f'input {{ name: "IN" data_type: TYPE_{kind} {sizes} }} output {{ name: "OUT" data_type: TYPE_{kind} {of_out} }}'


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("datatype", NUMBERS)
def test_every_number_is_computed(models, run, datatype, shape):
    models.copied(datatype, [-1] * len(shape))
    given = values(datatype, shape)
    out = run({"IN": given}, described(datatype, [-1] * len(shape)))["OUT"]
    assert (out.datatype, out.shape) == (datatype, shape)
    assert out.numpy().tolist() == given.tolist()


@pytest.mark.parametrize(("shape", "dims"), [*OPEN, ((2, 3), [2, 3])])
@pytest.mark.parametrize("datatype", [*NUMBERS, "BYTES"])
def test_an_aliased_input_is_returned_unchanged(models, run, datatype, shape, dims):
    models.same(datatype, dims)
    given = values(datatype, shape)
    out = run({"IN": given}, described(datatype, dims))["OUT"]
    assert (out.datatype, out.shape) == (datatype, shape)
    assert out.numpy().tolist() == given.tolist()


def test_an_input_may_be_an_output_and_used_for_others(models, run):
    one, other = models.parameter("A", "FP32", [-1, 2]), models.parameter("B", "FP32", [-1, 2])
    models.save(
        [
            models.result("SUM", ops.add(one, other)),
            ops.result(other),
            ops.result(other),
            ops.result(one),
        ],
        [one, other],
    )
    config = """input [{ name: "A" data_type: TYPE_FP32 dims: 2 }, { name: "B" data_type: TYPE_FP32 dims: 2 }] max_batch_size: 4
        output [{ name: "SUM" data_type: TYPE_FP32 dims: 2 }, { name: "B" data_type: TYPE_FP32 dims: 2 },
                { name: "A" data_type: TYPE_FP32 dims: 2 }]"""
    found = run({"A": np.ones((1, 2), np.float32), "B": np.full((1, 2), 2, np.float32)}, config)
    assert {name: tensor.numpy().tolist() for name, tensor in found.items()} == {
        "SUM": [[3, 3]], "B": [[2, 2]], "A": [[1, 1]]
    }  # fmt: skip


@pytest.mark.parametrize("datatype", ["FP32", "BF16"])
def test_a_scalar_of_the_model_is_one_element_for_clients(models, run, datatype):
    models.copied(datatype, [])
    given = np.ones(1, DTYPES[datatype])
    out = run(
        {"IN": given}, described(datatype, [1], [1, 1]).replace("dims: 1 dims: 1", "dims: 1")
    )["OUT"]
    assert out.shape == (1,)
    assert out.numpy().tolist() == [1]


@pytest.mark.parametrize(
    "make",
    [ops.relu, lambda node: ops.relu(ops.reshape(node, ops.constant(np.array([-1])), False))],
)
def test_read_only_memory_is_used_without_a_copy(models, run, make):
    models.map("FP32", [-1, 2], make)
    raw = np.arange(-2, 2, dtype=np.float32).tobytes()
    given = np.frombuffer(raw, np.float32).reshape(2, 2)
    out = run({"IN": given}, described("FP32", [-1, 2], [-1, 2] if make is ops.relu else [-1]))[
        "OUT"
    ]
    assert out.numpy().ravel().tolist() == [0, 0, 0, 1]
    assert raw == np.arange(-2, 2, dtype=np.float32).tobytes()


def test_unaligned_memory_is_supported(models, run):
    models.map("FP32", [-1, 16], ops.relu)
    given = np.frombuffer(
        b"x" + np.arange(160, dtype=np.float32).tobytes(), np.float32, offset=1
    ).reshape(10, 16)
    assert not given.flags.aligned
    out = run({"IN": given}, described("FP32", [-1, 16]))["OUT"]
    assert out.numpy().tolist() == np.arange(160).reshape(10, 16).tolist()


def test_the_configured_type_is_converted(models, run):
    models.map("FP32", [-1, 2], lambda node: ops.divide(node, ops.constant(np.float32(2))))
    config = """max_batch_size: 2 input { name: "IN" data_type: TYPE_UINT8 dims: 2 }
        output { name: "OUT" data_type: TYPE_FP16 dims: 2 }"""
    out = run({"IN": np.array([[255, 1]], np.uint8)}, config)["OUT"]
    assert out.datatype == "FP16"
    assert out.numpy().tolist() == [[127.5, 0.5]]


BATCH = "max_batch_size: 4 " + described("FP32", [2])


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_a_smaller_batch_is_padded_if_enabled(models, run, rows):
    models.map("FP32", [1, 2], lambda node: ops.multiply(node, ops.constant(np.float32(3))))
    given = values("FP32", (rows, 2))
    out = run({"IN": given}, BATCH, ENABLE_BATCH_PADDING="YES")["OUT"]
    assert out.numpy().tolist() == (given * 3).tolist()


def test_a_batch_of_another_size_is_rejected_with_tritons_text(models, run):
    models.map("FP32", [-1, 2], ops.relu)
    assert run({"IN": values("FP32", (4, 2))}, BATCH, SKIP_OV_DYNAMIC_BATCHSIZE="YES")[
        "OUT"
    ].shape == (4, 2)
    with pytest.raises(Internal) as caught:
        run({"IN": values("FP32", (3, 2))}, BATCH, SKIP_OV_DYNAMIC_BATCHSIZE="YES")
    assert caught.value.message == (
        "expected requests with batch size '4', got '3'... this error can be avoided by setting 'ENABLE_BATCH_PADDING' "
        "parameter in model configuration to 'YES' at a performance cost."
    )


def test_a_model_made_for_one_row_takes_batches_of_any_size(models, run):
    models.map("FP32", [1, 2], ops.relu)
    for rows in (1, 3, 4):
        assert run({"IN": values("FP32", (rows, 2))}, BATCH)["OUT"].shape == (rows, 2)


def test_inputs_are_reshaped_if_enabled(models, run):
    models.map(
        "FP32",
        [1, 2],
        lambda node: ops.reduce_sum(node, ops.constant(np.array([1])), keep_dims=True),
    )
    config = """input { name: "IN" data_type: TYPE_FP32 dims: [-1, 5] } output { name: "OUT" data_type: TYPE_FP32 dims: [-1, 1] }"""
    with pytest.raises(
        TritonError,
        match=r"the model expects 2 dimensions \(shape \[1,2\]\) but the model configuration specifies",
    ):
        run({"IN": values("FP32", (2, 5))}, config)
    assert run({"IN": values("FP32", (2, 5))}, config, RESHAPE_IO_LAYERS="YES")[
        "OUT"
    ].numpy().tolist() == [[10], [35]]


def test_model_state_is_reset_between_requests(models, opened):
    source = models.parameter("IN", "FP32", [1, 2])
    variable = "sum"
    old = ops.read_value(ops.constant(np.zeros((1, 2), np.float32)), variable)
    new = ops.add(source, old)
    models.path.parent.mkdir(parents=True)
    whole = openvino.Model(
        [models.result("OUT", new)], [ops.assign(new, variable)], [source], "test"
    )
    openvino.save_model(whole, models.path)
    config = text_format.Parse('name: "m" ' + described("FP32", [1, 2]), ModelConfig())
    compiled = opened(config).acquire(config, "CPU", ())
    assert compiled.stateful
    [request] = compiled.create_requests()
    for _ in range(2):
        running = Execution(config, compiled).prepare(
            [Tensor.from_numpy("IN", values("FP32", (1, 2)))], 1
        )
        running.fill(request)
        request.infer()
        assert running.outputs()["OUT"].numpy().tolist() == [[0, 1]]


def test_outputs_that_are_not_named_are_left_out(models, run):
    models.add_sub()
    ones = np.ones((1, 16), np.int32)
    config = """max_batch_size: 2 output { name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 }
        input [{ name: "INPUT0" data_type: TYPE_INT32 dims: 16 }, { name: "INPUT1" data_type: TYPE_INT32 dims: 16 }]"""
    assert list(run({"INPUT0": ones, "INPUT1": ones}, config)) == ["OUTPUT1"]


def test_every_input_is_needed(models, run):
    models.add_sub()
    config = """max_batch_size: 2 output { name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 }
        input [{ name: "INPUT0" data_type: TYPE_INT32 dims: 16 }, { name: "INPUT1" data_type: TYPE_INT32 dims: 16 }]"""
    with pytest.raises(Internal, match=r"^the model has 2 inputs, but the batch has 1$"):
        run({"INPUT0": np.ones((1, 16), np.int32)}, config)


def test_an_invalid_input_is_rejected_with_openvinos_text(models, run):
    models.copied("FP32", [-1, 2])
    with pytest.raises(
        Internal,
        match=r"(?s)^openvino error in setting tensor data : .*\(shape=\[\?,2\]\) and the tensor .*incompatible$",
    ):
        run({"IN": values("FP32", (1, 3))}, described("FP32", [-1, 2]))
