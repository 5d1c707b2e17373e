"""Sessions of one model version, shared by its instances."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tritonpy import MemoryUsage, ModelContext, Unavailable
from tritonpy.config import resolve_model_file
from tritonpy_backend_onnx.errors import to_triton_error
from tritonpy_backend_onnx.memory import folder_bytes, measure_memory
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import (
    CUDA,
    Provider,
    ProviderDevice,
    can_share_session,
    check_available,
    needs_open_lock,
    select_providers,
)
from tritonpy_backend_onnx.runtime import import_onnxruntime
from tritonpy_backend_onnx.settings import ModelSettings, model_settings
from tritonpy_backend_onnx.signature import Signature, read_signature
from tritonpy_backend_onnx.small_models import SMALL_MODEL_BYTES, small_model_threads
from tritonpy_config.processors import default_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

DEFAULT_FILENAME = "model.onnx"
_open_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An open `onnxruntime.InferenceSession`.

    `run_options` are the options of its runs, or None for the defaults. `value_type` is the class
    `OrtValue`.
    """

    session: Any
    signature: Signature
    run_options: Any
    value_type: Any


class SharedModel:
    """Sessions of one model version, opened on demand.

    Instances share one session per device and set of cores, or have one each (see
    `can_share_session`). Any thread may call `acquire`. A session lives while an instance or this
    object refers to it.
    """

    def __init__(self, model: ModelContext) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._sessions: dict[tuple[ProviderDevice, tuple[int, ...]], OpenSession] = {}
        self._described: dict[ProviderDevice, OpenSession] = {}
        self._memory_usage: WeakKeyDictionary[Any, MemoryUsage] = WeakKeyDictionary()

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory of each session that is still referenced."""
        with self._lock:
            return list(self._memory_usage.values())

    def acquire(self, device: ProviderDevice, cores: tuple[int, ...] = ()) -> OpenSession:
        """Return a session on `device`; raise a `TritonError` if it cannot be opened there.

        `cores` are the cores that the calling thread is pinned to, if any. The session's threads
        are pinned to them, too.
        """
        providers = select_providers(self._model.config, self._model.parameters, device)
        with self._lock:
            described = self._described.pop(device, None)
            if cores:
                described = None  # its threads are not pinned
            if not can_share_session(providers):
                return described or self._open(device, providers, cores)
            key = device, cores
            if key not in self._sessions:
                self._sessions[key] = described or self._open(device, providers, cores)
            return self._sessions[key]

    def _open(
        self, device: ProviderDevice, providers: list[Provider], cores: tuple[int, ...]
    ) -> OpenSession:
        model_bytes = folder_bytes(self._model.path)
        with measure_memory(device, model_bytes, self._model.gpus.memory) as measure:
            opened = open_session(self._model, providers, cores, model_bytes)
        self._memory_usage[opened.session] = measure.usage
        return opened

    def describe(self, device: ProviderDevice) -> Signature:
        """Return the model's signature.

        The first instance on `device` reuses the session opened for it.
        """
        opened = self.acquire(device)
        with self._lock:
            self._sessions.pop((device, ()), None)
            self._described[device] = opened
        return opened.signature

    def close(self) -> None:
        """Drop the references to all sessions.

        Each is freed with the last instance that uses it.
        """
        with self._lock:
            self._sessions.clear()
            self._described.clear()


def model_file(version_folder: Path, default_filename: str, model: str) -> Path:
    """Return the path of the model file, which may lie in a folder of the same name.

    Raises `Unavailable` if the file does not exist.
    """
    path = resolve_model_file(
        default_filename or DEFAULT_FILENAME, version_folder, version_folder.parent
    )
    if path.is_dir():
        path /= DEFAULT_FILENAME
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{model}'")
    return path


def first_device(config: ModelConfig) -> ProviderDevice:
    """Return the device on which to read the signature: a GPU if any instance group uses one."""
    for group in config.instance_group:
        if group.kind == group.KIND_GPU:
            return ProviderDevice("GPU", group.gpus[0] if group.gpus else 0)
    return ProviderDevice("CPU", 0)


def open_session(
    model: ModelContext,
    providers: list[Provider],
    cores: tuple[int, ...] = (),
    model_bytes: int = SMALL_MODEL_BYTES,
) -> OpenSession:
    """Open the model file with `providers`.

    Raises a `TritonError` with ONNX Runtime's text on failure. With `cores`, the session has one
    thread per core unless the model sets a thread count; ONNX Runtime would spread threads over all
    cores. `model_bytes` is the size of the model files. If many small models are open, another
    small one gets no threads of its own (see `small_models`).
    """
    path = model_file(model.path, model.config.default_model_filename, model.name)
    settings = model_settings(model.config, model.parameters)
    settings = replace(settings, intra_op_threads=settings.intra_op_threads or len(cores))
    assert isinstance(model.options, OnnxOptions), (  # noqa: S101
        "the core decodes this backend's options: this is a bug"
    )
    onnxruntime = import_onnxruntime(model.options)
    check_available(model.name, providers, onnxruntime.get_available_providers())
    wanted = [name for name, _ in providers]
    if CUDA in wanted:
        onnxruntime.preload_dlls()  # finds CUDA and cuDNN in their Python packages, if installed
    counts_threads = _needs_thread_limit(settings, model.options, model_bytes)
    if counts_threads and not small_model_threads.reserve(model.options.small_model_threads):
        counts_threads, settings = False, replace(settings, intra_op_threads=1)
    settings = replace(settings, intra_op_threads=settings.intra_op_threads or default_threads())
    try:
        options = _session_options(onnxruntime, settings, model)
        session = _create(onnxruntime, path, options, providers)
        if counts_threads:
            small_model_threads.bind(session)
            counts_threads = False
        signature = read_signature(session)
    except Exception as error:
        raise to_triton_error(error) from error
    finally:
        if counts_threads:
            small_model_threads.release()
    missing = [name for name in wanted if name not in session.get_providers()]
    if missing:
        raise Unavailable(
            f"model '{model.name}' needs ONNX Runtime's {missing[0]}, which is installed but did "
            "not start: one of its libraries is"
            " missing or incompatible with the driver; ONNX Runtime's log message names it"
        )
    return OpenSession(
        session, signature, _run_options(onnxruntime, settings.run_entries), onnxruntime.OrtValue
    )


def _needs_thread_limit(settings: ModelSettings, options: OnnxOptions, model_bytes: int) -> bool:
    """Return whether this is a small model that does not set its own thread count."""
    is_configured = any(
        key.startswith("session.intra_op_thread") for key in settings.session_entries
    )
    return (
        model_bytes < SMALL_MODEL_BYTES
        and settings.intra_op_threads == 0
        and not is_configured
        and not options.enable_global_threadpool
    )


def _session_options(onnxruntime: Any, settings: ModelSettings, model: ModelContext) -> Any:
    options = onnxruntime.SessionOptions()
    options.logid = model.name
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, settings.graph_level
    )
    mode = onnxruntime.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if settings.parallel else mode.ORT_SEQUENTIAL
    if model.options.enable_global_threadpool:  # type: ignore[attr-defined]
        options.use_per_session_threads = False
    else:
        options.intra_op_num_threads = settings.intra_op_threads
        options.inter_op_num_threads = settings.inter_op_threads
    if settings.memory_arena is not None:
        options.enable_cpu_mem_arena = settings.memory_arena
    if settings.memory_pattern is not None:
        options.enable_mem_pattern = settings.memory_pattern
    for key, value in settings.session_entries.items():
        options.add_session_config_entry(key, value)
    for library in settings.op_libraries:
        options.register_custom_ops_library(library)
    return options


def _create(onnxruntime: Any, path: Path, options: Any, providers: list[Provider]) -> Any:
    def create() -> Any:
        # Fallback is off: a failing provider must be an error, not a model that silently runs on
        # the CPU.
        return onnxruntime.InferenceSession(
            str(path), options, providers=providers, enable_fallback=0
        )

    with _open_lock if needs_open_lock(providers) else nullcontext():
        return create()


def _run_options(onnxruntime: Any, entries: Mapping[str, str]) -> Any:
    if not entries:
        return None
    options = onnxruntime.RunOptions()
    for key, value in entries.items():
        options.add_run_config_entry(key, value)
    return options
