from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import MemoryUsage
from tritonpy_backend_tf.frozen_graph import FrozenGraph
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.precision import cpu_flags, precision_rewriter
from tritonpy_backend_tf.saved_model import SavedModel
from tritonpy_backend_tf.session import OpenSession, SessionDevice, open_session, session_config
from tritonpy_backend_tf.settings import model_settings
from tritonpy_testing import model_config

CPU = SessionDevice("CPU")
ROWS = np.random.default_rng(5).random((8, 64), np.float32)


def settings(text="", **parameters):
    return model_settings(model_config(f'name: "m" {text}'), parameters)


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


class Network:
    """The network of the fixture, in sessions that are closed at the end of the test."""

    def __init__(self, models: Any) -> None:
        self.tf = models.tf
        self.source = SavedModel(models.network(), "m", "", "")
        [self.feed], [self.fetch] = (
            [info.tensor for info in infos.values()]
            for infos in (self.source.signature.inputs, self.source.signature.outputs)
        )
        self.opened: list[Any] = []

    def open(self, text="", device=CPU, rewriter=None, **parameters):
        options = TensorFlowOptions()
        self.opened.append(
            open_session(self.source, settings(text, **parameters), options, device, rewriter)
        )
        return self.opened[-1]

    def scores(self, opened):
        [scores] = opened.make_callable([self.feed], [self.fetch])(ROWS)
        return scores

    def operations(self, opened):
        """The types of the executed operations."""
        tf1 = self.tf.compat.v1
        types = tf1.RunMetadata()
        opened.session.run(
            self.fetch,
            {self.feed: ROWS},
            tf1.RunOptions(output_partition_graphs=True),
            run_metadata=types,
        )
        return {node.op for graph in types.partition_graphs for node in graph.node}


@pytest.fixture
def network(models):
    found = Network(models)
    yield found
    for session in found.opened:
        session.close()


def test_the_graph_level_compiles_with_xla_on_the_cpu_too(network):
    plain, compiled = network.open(), network.open("optimization { graph { level: 1 } }")
    assert "_XlaRun" in network.operations(compiled)
    assert "_XlaRun" not in network.operations(plain)
    assert np.allclose(network.scores(plain), network.scores(compiled), atol=1e-4)


def test_bf16_computes_with_less_precision(network):
    if not {"avx512f", "avx_ne_convert"} & cpu_flags():
        pytest.skip("needs a processor with AVX-512 or AVX-NE-CONVERT")
    plain = network.scores(network.open())
    rewriter = precision_rewriter(
        model_config('name: "m"'), {"precision": "bf16"}, "CPU", cpu_flags()
    )
    lower = network.open(rewriter=rewriter)
    scores = network.scores(lower)
    assert "Cast" in network.operations(lower)
    assert 0 < np.abs(plain - scores).max() < 0.05 * np.abs(plain).max()


def test_each_session_has_its_configured_threads_and_frees_them(network):
    network.scores(network.open())  # state shared by all sessions exists now
    before = threads()
    small = network.open(TF_NUM_INTRA_THREADS="1", TF_NUM_INTER_THREADS="1")
    network.scores(small)
    of_small = threads() - before
    large = network.open(TF_NUM_INTRA_THREADS="9", TF_NUM_INTER_THREADS="6")
    network.scores(large)
    assert threads() - before - of_small >= 9 + 6
    assert of_small <= 1, "its operations run in the thread that asks"
    for session in (small, large):
        session.close()
    assert threads() <= before


def test_a_pinned_session_uses_threads_on_its_cores_only(network):
    core = min(os.sched_getaffinity(0))
    network.scores(network.open())
    before = set(os.listdir("/proc/self/task"))
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
        network.scores(network.open(device=SessionDevice("CPU", 0, (core,))))
    finally:
        os.sched_setaffinity(0, allowed)
    new = set(os.listdir("/proc/self/task")) - before
    assert all(os.sched_getaffinity(int(thread)) == {core} for thread in new)
    assert len(new) <= 1


def test_the_memory_of_variables_is_counted(network):
    [usage] = network.open().memory
    weights = (64 * 256 + 256 * 256) * 4
    assert (usage.type, usage.id) == ("CPU", 0)
    assert weights <= usage.byte_size < weights + 1000


def test_the_memory_of_constants_is_counted(models):
    def build(tf1):
        weights = tf1.constant(np.ones((100, 10), np.float32))
        tf1.matmul(tf1.placeholder("float32", (None, 100), "x"), weights, name="y")

    source = FrozenGraph(models.graph_def(build), "m")
    opened = open_session(source, settings(), TensorFlowOptions(), CPU)
    assert opened.memory == (MemoryUsage("CPU", 0, 4000),)
    opened.close()


def test_init_operations_are_run(models):
    def build(tf1):
        count = tf1.get_variable("count", initializer=7, use_resource=True)
        tf1.variables_initializer([count], "init")
        tf1.add(count, tf1.placeholder("int32", (), "x"), "y")

    source = FrozenGraph(models.graph_def(build), "m")
    for names, works in (([], False), (["init"], True)):
        opened = open_session(source, settings(), TensorFlowOptions(), CPU, init_ops=names)
        run = opened.make_callable(["x:0"], ["y:0"])
        if works:
            assert run(np.int32(1)) == [8]
        else:
            with pytest.raises(models.tf.errors.FailedPreconditionError):
                run(np.int32(1))
        opened.close()
    with pytest.raises(KeyError, match="unknown"):
        open_session(source, settings(), TensorFlowOptions(), CPU, init_ops=["unknown"])


def test_an_invalid_operator_library_is_named(network, tmp_path):
    library = tmp_path / "ops.so"
    library.write_text("no library")
    with pytest.raises(network.tf.errors.NotFoundError, match=r"ops\.so"):
        network.open(f'model_operations {{ op_library_filename: "{library}" }}')


def test_two_instances_of_a_session_run_concurrently_without_the_gil(models):
    tf1 = models.tf.compat.v1
    with models.tf.Graph().as_default() as graph:
        queue = tf1.FIFOQueue(1, ["int32"])
        value = tf1.placeholder("int32", (), "value")
        with tf1.control_dependencies([queue.enqueue(value)]):
            tf1.identity(value, "put")
        tf1.identity(queue.dequeue(), "taken")
        opened = OpenSession(tf1.Session(graph=graph), ())
    take, put = opened.make_callable([], ["taken:0"]), opened.make_callable(["value:0"], ["put:0"])
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(take)  # waits inside TensorFlow until the other call puts a value
        put(np.int32(7))
        assert taken.result() == [7]
    opened.close()


@pytest.mark.parametrize("kind", ["GPU", "MODEL"])
def test_gpu_memory_grows_as_needed_or_is_allocated_at_once(models, kind):
    growing = session_config(
        models.tf, settings(), TensorFlowOptions(), SessionDevice(kind, 1)
    ).gpu_options
    assert (growing.allow_growth, growing.per_process_gpu_memory_fraction) == (True, 0)
    options = TensorFlowOptions(gpu_memory_fraction=0.25, allow_soft_placement=False)
    config = session_config(models.tf, settings(), options, SessionDevice(kind, 1))
    assert (
        config.gpu_options.allow_growth,
        config.gpu_options.per_process_gpu_memory_fraction,
    ) == (False, 0.25)
    assert not config.allow_soft_placement


def test_a_memory_limit_creates_a_virtual_gpu(models):
    limited = settings(memory_limit_bytes=str(3 * 2**30))
    gpu = session_config(
        models.tf, limited, TensorFlowOptions(), SessionDevice("GPU", 1)
    ).gpu_options
    assert gpu.visible_device_list == "1"
    assert [list(device.memory_limit_mb) for device in gpu.experimental.virtual_devices] == [[3072]]


def test_a_session_on_the_cpu_never_touches_a_gpu(models):
    assert session_config(models.tf, settings(), TensorFlowOptions(), CPU).device_count["GPU"] == 0


def test_a_session_knows_which_devices_there_are(network):
    opened = network.open()
    assert opened.has_device("/cpu:0")
    assert not opened.has_device("/gpu:99")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (CPU, "CPU:0"),
        (SessionDevice("GPU", 0), "GPU:0"),
        (SessionDevice("GPU", 1), "GPU:1"),
        (SessionDevice("MODEL"), ""),
    ],
)
def test_the_graph_is_placed_on_the_device_of_its_instance(network, device, expected):
    graph = network.open(device=device).session.graph
    places = {
        operation.device for operation in graph.get_operations() if operation.type == "VarHandleOp"
    }
    assert len(places) == 1
    assert places.pop().endswith(expected)
