from __future__ import annotations

import gc
import weakref

import pytest

from tritonpy import Internal, InvalidArgument, Unavailable, Unsupported
from tritonpy_backend_tf.session import Device
from tritonpy_backend_tf.sessions import Sessions

CPU = Device("CPU")


@pytest.fixture
def sessions(models, load):
    """Makes the sessions of the model in the test's folder."""
    made = []

    def make(text="", **parameters):
        made.append(Sessions(load(text, **parameters).model))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_instances_of_a_device_share_a_session_until_the_last_one_gives_it_back(models, sessions):
    models.add_sub()
    found = sessions()
    one, other, bound = found.acquire(CPU), found.acquire(CPU), found.acquire(Device("CPU", 0, (0,)))
    assert one is other
    assert bound is not one
    outputs = [found.source.signature.outputs["OUTPUT0"].tensor]
    inputs = [info.tensor for info in found.source.signature.inputs.values()]
    found.release(one)
    one.opened.prepare(inputs, outputs)
    found.release(other)
    with pytest.raises(models.tf.errors.CancelledError, match="closed"):
        one.opened.prepare(inputs, outputs)
    assert found.acquire(CPU) is not one
    assert found.acquire(Device("CPU", 0, (0,))) is bound


def test_a_model_says_how_many_instances_share_a_session(models, sessions):
    models.add_sub()
    found = sessions(MAX_SESSION_SHARE_COUNT="2")
    first, second, third, fourth = (found.acquire(CPU) for _ in range(4))
    assert first is second
    assert third is fourth
    assert second is not third


def test_the_memory_of_every_session_is_told(models, sessions):
    models.network()
    found = sessions(MAX_SESSION_SHARE_COUNT="1")
    assert found.memory() == []
    shares = [found.acquire(CPU) for _ in range(3)]
    assert len(found.memory()) == 3
    found.release(shares[0])
    assert len(found.memory()) == 2


def test_a_model_without_a_file_is_told_which_one_it_needs(models, sessions):
    models.version.mkdir(parents=True)
    found = sessions('platform: "tensorflow_graphdef" default_model_filename: "model.graphdef"')
    with pytest.raises(Unavailable, match=r"unable to find '.*/1/model.graphdef' for model instance 'm'"):
        found.acquire(CPU)


@pytest.mark.parametrize(("device", "isolation"), [(CPU, "process"), (Device("GPU"), "thread")])
def test_a_limit_of_memory_needs_a_gpu_and_a_process(models, sessions, device, isolation):
    models.add_sub()
    found = sessions(memory_limit_bytes="1000000", isolation=isolation)
    with pytest.raises(InvalidArgument, match="parameter memory_limit_bytes limits what a process takes of a GPU"):
        found.acquire(device)


def test_a_precision_that_the_device_has_not_is_refused(models, sessions):
    models.add_sub()
    with pytest.raises(Unsupported, match="precision bf16 cannot be had on this GPU"):
        sessions(precision="bf16").acquire(Device("GPU"))


def test_a_gpu_that_tensorflow_cannot_use_is_refused_rather_than_left_for_the_cpu(models, sessions):
    models.add_sub()
    found = sessions()
    with pytest.raises(
        Unavailable, match=r"model 'm' needs GPU 99, which TensorFlow cannot use: pip install 'tensorflow\[and-cuda\]'"
    ):
        found.acquire(Device("GPU", 99))
    assert found.memory() == []


def test_an_accelerator_of_gpus_is_told_to_be_of_no_use_on_the_cpu(models, sessions, caplog):
    models.add_sub()
    accelerators = 'execution_accelerators { gpu_execution_accelerator { name: "auto_mixed_precision" } }'
    found = sessions(f"optimization {{ {accelerators} }}")
    with caplog.at_level("WARNING"):
        found.release(found.acquire(CPU))
    assert caplog.messages == ["GPU Execution Accelerator will be ignored for model instance on CPU"]


def test_operations_that_prepare_the_graph_are_read_from_their_file(models, sessions):
    models.add_sub_graph()
    (models.folder / "init.json").write_text('{"init_ops": ["nobody"]}')
    with pytest.raises(
        Internal, match=r"unable to load model 'm' from .*/1: .*'nobody' refers to an Operation not in the graph"
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
        share = found.acquire(CPU)
        graph, session = weakref.ref(share.opened.session.graph), weakref.ref(share.opened.session)
        inputs = [info.tensor for info in signature.inputs.values()]
        run = share.opened.prepare(inputs, [info.tensor for info in signature.outputs.values()])
        found.release(share)
        del run, share
        assert session() is None
        assert graph() is None, "its constants and what TensorFlow has made of it are still there"
    finally:
        gc.enable()
