from __future__ import annotations

import gc
import weakref

import pytest

from tritonpy import Internal, InvalidArgument, Unavailable, Unsupported
from tritonpy_backend_tf.session import SessionDevice
from tritonpy_backend_tf.shared_model import SharedModel

CPU = SessionDevice("CPU")


@pytest.fixture
def sessions(models, load):
    """Creates the shared model of the model in the test's folder."""
    made = []

    def make(text="", **parameters):
        made.append(SharedModel(load(text, **parameters).model))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_instances_on_a_device_share_a_session_until_the_last_release(models, sessions):
    models.add_sub()
    found = sessions()
    one, other, bound = (
        found.acquire(CPU),
        found.acquire(CPU),
        found.acquire(SessionDevice("CPU", 0, (0,))),
    )
    assert one is other
    assert bound is not one
    outputs = [found.source.signature.outputs["OUTPUT0"].tensor]
    inputs = [info.tensor for info in found.source.signature.inputs.values()]
    found.release(one)
    one.opened.make_callable(inputs, outputs)
    found.release(other)
    with pytest.raises(models.tf.errors.CancelledError, match="closed"):
        one.opened.make_callable(inputs, outputs)
    assert found.acquire(CPU) is not one
    assert found.acquire(SessionDevice("CPU", 0, (0,))) is bound


def test_the_share_count_limits_instances_per_session(models, sessions):
    models.add_sub()
    found = sessions(MAX_SESSION_SHARE_COUNT="2")
    first, second, third, fourth = (found.acquire(CPU) for _ in range(4))
    assert first is second
    assert third is fourth
    assert second is not third


def test_the_memory_of_every_session_is_reported(models, sessions):
    models.network()
    found = sessions(MAX_SESSION_SHARE_COUNT="1")
    assert found.memory_usage() == []
    shares = [found.acquire(CPU) for _ in range(3)]
    assert len(found.memory_usage()) == 3
    found.release(shares[0])
    assert len(found.memory_usage()) == 2


def test_a_missing_file_is_named_in_the_error(models, sessions):
    models.version.mkdir(parents=True)
    found = sessions('platform: "tensorflow_graphdef" default_model_filename: "model.graphdef"')
    with pytest.raises(
        Unavailable, match=r"unable to find '.*/1/model.graphdef' for model instance 'm'"
    ):
        found.acquire(CPU)


@pytest.mark.parametrize(
    ("device", "isolation"), [(CPU, "process"), (SessionDevice("GPU"), "thread")]
)
def test_a_memory_limit_needs_a_gpu_and_process_isolation(models, sessions, device, isolation):
    models.add_sub()
    found = sessions(memory_limit_bytes="1000000", isolation=isolation)
    with pytest.raises(
        InvalidArgument,
        match="parameter memory_limit_bytes limits only the GPU memory of a process",
    ):
        found.acquire(device)


def test_a_precision_that_the_device_lacks_is_rejected(models, sessions):
    models.add_sub()
    with pytest.raises(Unsupported, match="precision bf16 is not supported on this GPU"):
        sessions(precision="bf16").acquire(SessionDevice("GPU"))


def test_an_unusable_gpu_is_an_error_instead_of_a_cpu_fallback(models, sessions):
    models.add_sub()
    found = sessions()
    with pytest.raises(
        Unavailable,
        match=r"model 'm' needs GPU 99, which TensorFlow cannot use: pip install 'tensorflow\[and-cuda\]'",
    ):
        found.acquire(SessionDevice("GPU", 99))
    assert found.memory_usage() == []


def test_a_gpu_accelerator_on_the_cpu_is_logged(models, sessions, caplog):
    models.add_sub()
    accelerators = (
        'execution_accelerators { gpu_execution_accelerator { name: "auto_mixed_precision" } }'
    )
    found = sessions(f"optimization {{ {accelerators} }}")
    with caplog.at_level("WARNING"):
        found.release(found.acquire(CPU))
    assert caplog.messages == [
        "GPU Execution Accelerator will be ignored for model instance on CPU"
    ]


def test_init_operations_are_read_from_their_file(models, sessions):
    models.add_sub_graph()
    (models.folder / "init.json").write_text('{"init_ops": ["unknown"]}')
    with pytest.raises(
        Internal,
        match=r"unable to load model 'm' from .*/1: .*'unknown' refers to an Operation not in the graph",
    ):
        sessions(TF_INIT_OPS_FILE="init.json").acquire(CPU)


@pytest.mark.parametrize("build", ["network", "add_sub_graph"])
def test_nothing_of_a_session_waits_for_the_garbage_collector(models, sessions, build):
    getattr(models, build)()
    found = sessions()
    gc.collect()
    gc.disable()
    try:
        signature = found.signature()
        shared_session = found.acquire(CPU)
        graph, session = (
            weakref.ref(shared_session.opened.session.graph),
            weakref.ref(shared_session.opened.session),
        )
        inputs = [info.tensor for info in signature.inputs.values()]
        run = shared_session.opened.make_callable(
            inputs, [info.tensor for info in signature.outputs.values()]
        )
        found.release(shared_session)
        del run, shared_session
        assert session() is None
        assert graph() is None, "its constants and what TensorFlow has made of it are still there"
    finally:
        gc.enable()
