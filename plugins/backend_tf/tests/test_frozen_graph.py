from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Internal
from tritonpy_backend_tf.frozen_graph import FrozenGraph
from tritonpy_backend_tf.signature import TensorInfo


def test_placeholders_are_inputs_and_unused_tensors_are_outputs(models):
    def build(tf1):
        one = tf1.placeholder("float32", (None, 4), "one")
        maybe = tf1.placeholder_with_default(np.ones(2, np.float32), None, "maybe")
        tf1.placeholder("float64", None, "unknown")
        sums = tf1.add(one, tf1.constant(3.0, name="three"), "sum")
        tf1.split(sums, 2, axis=1, name="halves")
        tf1.add(sums, maybe[0], "sum_of_both")
        tf1.constant(5.0, name="forgotten")
        tf1.complex(sums, sums, "cannot_be_carried")

    path = models.graph_def(build)
    signature = FrozenGraph(path, "m").signature
    assert signature.inputs == {
        "one": TensorInfo("FP32", (-1, 4), "one:0"),
        "unknown": TensorInfo("FP64", None, "unknown:0"),
    }
    assert list(signature.optional) == ["maybe"]
    assert signature.outputs == {
        "halves": TensorInfo("FP32", (-1, 2), "halves:0"),
        "halves:1": TensorInfo("FP32", (-1, 2), "halves:1"),
        "sum_of_both": TensorInfo("FP32", None, "sum_of_both:0"),
    }
    assert {"sum", "three", "forgotten"} <= set(signature.inner)
    assert not signature.exact


@pytest.mark.parametrize("content", [b"", b"this is no graph"])
def test_a_file_without_a_graph_is_rejected(tmp_path, content):
    path = tmp_path / "model.graphdef"
    path.write_bytes(content)
    with pytest.raises(
        Internal, match="has an empty network" if not content else f"{path} is not a valid GraphDef"
    ):
        _ = FrozenGraph(path, "m").signature


def test_a_truncated_file_is_refused(models):
    path = models.add_sub_graph()
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(Internal, match="is not a valid GraphDef"):
        _ = FrozenGraph(path, "m").signature


@pytest.mark.parametrize(
    ("device", "expected"), [("/gpu:1", "GPU:1"), ("/cpu:0", "CPU:0"), ("", "GPU:7")]
)
def test_gpus_of_the_graph_become_the_device_of_the_session(models, device, expected):
    def build(tf1):
        with tf1.device("/gpu:7"):
            tf1.placeholder("float32", (2,), "x")
        with tf1.device("/cpu:0"):
            tf1.identity(tf1.get_default_graph().get_tensor_by_name("x:0"), "y")

    graph = FrozenGraph(models.graph_def(build), "m")
    with models.tf.Graph().as_default() as found:
        graph.restore(models.tf, None, device)
    assert found.get_operation_by_name("x").device.endswith(expected)
    assert found.get_operation_by_name("y").device.endswith("CPU:0")
