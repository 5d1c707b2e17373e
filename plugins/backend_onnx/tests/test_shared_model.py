from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import onnxruntime
import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument, TritonError, Unavailable
from tritonpy.plugins import install_command
from tritonpy_backend_onnx.providers import CPU, ProviderDevice
from tritonpy_backend_onnx.shared_model import SharedModel, first_device, model_file, open_session
from tritonpy_protos.model_config_pb2 import ModelConfig

HOST = ProviderDevice("CPU", 0)


def test_a_model_is_found_as_a_file_and_inside_a_folder_of_that_name(tmp_path):
    (tmp_path / "model.onnx").mkdir()
    (tmp_path / "model.onnx" / "model.onnx").touch()
    (tmp_path / "other.onnx").touch()
    assert model_file(tmp_path, "", "m") == tmp_path / "model.onnx" / "model.onnx"
    assert model_file(tmp_path, "other.onnx", "m") == tmp_path / "other.onnx"


@pytest.mark.parametrize("name", ["../../other/1/model.onnx", "../..", "x/../../../model.onnx"])
def test_a_file_outside_the_models_folder_is_refused(tmp_path, name):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        model_file(tmp_path, name, "m")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(Unavailable) as caught:
        model_file(tmp_path, "", "m")
    assert caught.value.message == f"unable to find '{tmp_path}/model.onnx' for model instance 'm'"


@pytest.mark.parametrize(
    ("groups", "device"),
    [
        ("", HOST),
        ("instance_group { kind: KIND_CPU }", HOST),
        (
            "instance_group { kind: KIND_CPU } instance_group { kind: KIND_GPU gpus: 2 }",
            ProviderDevice("GPU", 2),
        ),
        ("instance_group { kind: KIND_GPU }", ProviderDevice("GPU", 0)),
    ],
)
def test_a_signature_is_read_on_a_gpu_if_any_group_uses_one(groups, device):
    assert first_device(text_format.Parse(groups, ModelConfig())) == device


def test_settings_reach_the_session(models, context):
    models.add_sub()
    opened = open_session(
        context(
            "optimization { graph { level: 2 } }",
            intra_op_thread_count="1", inter_op_thread_count="2", execution_mode="1", enable_mem_arena="0",
            enable_mem_pattern="0", **{"memory.enable_memory_arena_shrinkage": "cpu:0"},
        ),
        [(CPU, {})],
    )  # fmt: skip
    options = opened.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 2)
    assert (options.enable_cpu_mem_arena, options.enable_mem_pattern) == (False, False)
    assert options.execution_mode.name == "ORT_PARALLEL"
    assert options.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert (
        opened.run_options.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"
    )


def test_without_run_entries_there_are_no_run_options(models, context):
    models.add_sub()
    assert open_session(context(), [(CPU, {})]).run_options is None


def test_an_invalid_file_fails_with_onnxruntimes_text(models, context):
    models.add_sub().write_bytes(b"not a model")
    with pytest.raises(TritonError) as caught:
        SharedModel(context()).acquire(HOST)
    assert (
        caught.value.message
        == f"onnx runtime error 7: Load model from {models.path} failed:Protobuf parsing failed."
    )


def test_a_truncated_model_fails_the_load(models, context):
    path = models.add_sub()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TritonError, match=r"^onnx runtime error "):
        SharedModel(context()).acquire(HOST)


def test_a_missing_operator_library_fails_the_load_by_name(models, context):
    models.add_sub()
    with pytest.raises(TritonError, match=r"^onnx runtime error .*nowhere\.so"):
        SharedModel(context('model_operations { op_library_filename: "nowhere.so" }')).acquire(HOST)


def test_a_gpu_without_its_provider_fails_the_load_with_what_to_install(
    models, context, monkeypatch
):
    models.add_sub()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CPU])
    with pytest.raises(
        Unavailable,
        match=r"CUDAExecutionProvider.*" + re.escape(install_command("tritonpy-backend-onnx[gpu]")),
    ):
        SharedModel(context()).acquire(ProviderDevice("GPU", 0))


def test_a_provider_that_does_not_start_fails_the_load(models, context, monkeypatch):
    models.add_sub()

    class WithoutDriver:
        """ONNX Runtime for GPUs without CUDA: it logs a warning and continues."""

        def __getattr__(self, name):
            return getattr(onnxruntime, name)

        def get_available_providers(self):
            return ["CUDAExecutionProvider", CPU]

        def preload_dlls(self):
            pass

        def InferenceSession(self, path, options, providers, enable_fallback):
            return onnxruntime.InferenceSession(
                path, options, providers=[CPU], enable_fallback=enable_fallback
            )

    monkeypatch.setattr(
        "tritonpy_backend_onnx.shared_model.import_onnxruntime", lambda _options: WithoutDriver()
    )
    with pytest.raises(
        Unavailable, match="CUDAExecutionProvider, which is installed but did not start"
    ):
        SharedModel(context()).acquire(ProviderDevice("GPU", 0))


def test_all_instances_of_a_device_share_one_session(models, context):
    models.add_sub()
    sessions = SharedModel(context())
    barrier = threading.Barrier(4)

    def acquire(_number):
        barrier.wait()
        return sessions.acquire(HOST).session

    with ThreadPoolExecutor(4) as pool:
        assert len({id(session) for session in pool.map(acquire, range(4))}) == 1


def test_the_first_instance_reuses_the_session_opened_for_the_signature(models, context):
    models.add_sub()
    sessions = SharedModel(context())
    signature = sessions.describe(HOST)
    assert sessions.acquire(HOST).signature is signature


def test_sessions_that_cannot_be_shared_are_one_per_instance(models, context, monkeypatch):
    models.add_sub()
    monkeypatch.setattr(
        "tritonpy_backend_onnx.shared_model.can_share_session", lambda _providers: False
    )
    sessions = SharedModel(context())
    signature = sessions.describe(HOST)
    first, second = sessions.acquire(HOST), sessions.acquire(HOST)
    assert first.signature is signature
    assert first.session is not second.session


def test_after_close_a_new_session_is_opened(models, context):
    models.add_sub()
    sessions = SharedModel(context())
    before = sessions.acquire(HOST)
    sessions.close()
    assert sessions.acquire(HOST) is not before


def threads_of_a_session(context, cores, **parameters):
    """Return the affinities of the threads of a session opened on `cores`."""
    before = set(os.listdir("/proc/self/task"))
    sessions = SharedModel(context(**parameters))

    def opened():
        os.sched_setaffinity(0, cores)
        return sessions.acquire(HOST, cores)

    with ThreadPoolExecutor(1) as pool:
        session = pool.submit(opened).result()
        started = set(os.listdir("/proc/self/task")) - before
        found = []
        for thread in started:
            with suppress(ProcessLookupError):  # an unrelated thread that has ended
                found.append(os.sched_getaffinity(int(thread)))
    return session, found


def test_the_threads_of_a_session_run_on_the_cores_of_its_instance(models, context):
    models.add_sub()
    core = min(os.sched_getaffinity(0))
    session, found = threads_of_a_session(context, (core,), intra_op_thread_count="3")
    # The instance's thread and two of ONNX Runtime; other threads of this process may start
    # meanwhile.
    assert found.count({core}) >= 3
    assert session.session.get_session_options().intra_op_num_threads == 3


def test_a_pinned_session_has_a_thread_per_core(models, context):
    models.add_sub()
    session, _ = threads_of_a_session(context, (min(os.sched_getaffinity(0)),))
    assert session.session.get_session_options().intra_op_num_threads == 1


def test_instances_pinned_to_the_same_cores_share_a_session(models, context):
    models.add_sub()
    sessions = SharedModel(context())
    sessions.describe(HOST)
    bound = sessions.acquire(HOST, (0,))
    assert sessions.acquire(HOST, (0,)) is bound
    assert sessions.acquire(HOST) is not bound
    assert sessions.acquire(HOST) is sessions.acquire(HOST)


def test_an_unused_session_opened_for_the_signature_is_not_kept(models, context):
    models.add_sub()
    sessions = SharedModel(context())
    sessions.describe(HOST)
    sessions.acquire(HOST, (0,))
    assert sessions._described == {}
