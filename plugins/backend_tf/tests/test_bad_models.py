"""Invalid models fail to load with a clear error and do not affect other models."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tritonpy import TritonError
from tritonpy_testing import InferInput, InProcessClient, running_server

WRONG_TYPE = 'input { name: "IN" data_type: TYPE_INT8 dims: 2 } max_batch_size: 4'


def truncated(models):
    path = models.identity("float32", (None, 2)) / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:-30])


def without_weights(models):
    shutil.rmtree(models.network() / "variables")


def truncated_weights(models):
    [path] = (models.network() / "variables").glob("*.data-*")
    path.write_bytes(path.read_bytes()[:1000])


def with_an_unknown_operation(models):
    path = models.add_sub_graph()
    graph = models.tf.compat.v1.GraphDef.FromString(path.read_bytes())
    next(node for node in graph.node if node.name == "OUTPUT0").op = "NobodysAdd"
    path.write_bytes(graph.SerializeToString())


def with_code(models):
    import keras

    models.keras(keras.layers.Lambda(lambda x: x, output_shape=(64,)))


def no_archive(models):
    models.keras().write_bytes(b"PK\x03\x04 and nothing more")


BAD = {
    "truncated": (truncated, "", "saved_model.pb is not a valid SavedModel"),
    "no_weights": (without_weights, "", "not a valid checkpoint"),
    "half_weights": (truncated_weights, "", "/1: Graph execution error:\n\nRead less bytes than requested"),
    "wrong_type": (
        lambda models: models.identity("float32", (None, 2)), WRONG_TYPE,
        "configuration expects datatype TYPE_INT8 for input 'IN', model provides TYPE_FP32",
    ),
    "wrong_signature": (
        lambda models: models.identity("float32", (2,)), 'parameters { key: "TF_SIGNATURE_DEF" value { string_value: "x" } }',
        "expected 'x' signature, there is: 'serving_default'",
    ),
    "unknown_op": (with_an_unknown_operation, "", "NobodysAdd"),
    "lambda": (with_code, "", "contains code (a Lambda layer)"),
    "no_archive": (no_archive, "", "model.keras is damaged, truncated or not a Keras 3 file"),
    "unknown_precision": (
        lambda models: models.identity("float32", (2,)), 'parameters { key: "precision" value { string_value: "int4" } }',
        "parameter 'precision' is 'int4', it must be one of fp32, bf16, fp16",
    ),
    "no_file": (lambda models: models.version.mkdir(parents=True, exist_ok=True), "", "unable to find"),
}  # fmt: skip


@pytest.fixture
def server(models, model_repository):
    models.version = model_repository.add("good").joinpath("1")
    models.add_sub()
    for name, (build, text, _) in BAD.items():
        models.version = model_repository.add(name, f'backend: "tensorflow" {text}') / "1"
        build(models)
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "control": {"mode": "explicit", "load": ["good"]},
    }
    with running_server(config) as server:
        yield server


def test_bad_models_report_their_error_and_a_good_one_serves(server):
    array = np.ones((1, 16), np.int32)
    inputs = [
        InferInput(name, [1, 16], "INT32").set_data_from_numpy(array)
        for name in ("INPUT0", "INPUT1")
    ]
    for name, (_, _, expected) in BAD.items():
        with pytest.raises(TritonError):
            server.engine.load_model(name)
        [line] = [line for line in server.engine.repository_index() if line.name == name]
        assert expected in line.reason, line.reason
        assert (InProcessClient(server).infer("good", inputs).as_numpy("OUTPUT0") == 2).all()
