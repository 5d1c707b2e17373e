"""Opens the sessions of one model version, and shares them among its instances."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tritonpy import MemoryUsage, ModelContext, Unavailable, resolve_model_file
from tritonpy_backend_onnx.failures import failure_of
from tritonpy_backend_onnx.memory import file_bytes, measured
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.providers import (
    CUDA,
    Device,
    Provider,
    check_available,
    opens_alone,
    providers_for,
    shares_session,
)
from tritonpy_backend_onnx.runtime import runtime
from tritonpy_backend_onnx.settings import SessionSettings, session_settings
from tritonpy_backend_onnx.signature import Signature, signature_of
from tritonpy_backend_onnx.small_models import SMALL_BYTES, small_model_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

DEFAULT_FILENAME = "model.onnx"
_alone = threading.Lock()


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An `onnxruntime.InferenceSession`, what it says of itself, the options of its runs (None: the defaults), and `OrtValue`."""

    session: Any
    signature: Signature
    run_options: Any
    value_type: Any


class Sessions:
    """The sessions of one model version: one per device and cores of a host policy, opened when first asked for, or one per instance.

    `acquire` may be called from any thread. A session lives while an instance or this object refers to it.
    """

    def __init__(self, model: ModelContext) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._kept: dict[tuple[Device, tuple[int, ...]], OpenSession] = {}
        self._described: dict[Device, OpenSession] = {}
        self._held: WeakKeyDictionary[Any, MemoryUsage] = WeakKeyDictionary()

    def memory_usage(self) -> list[MemoryUsage]:
        """Return what each session has that somebody refers to."""
        with self._lock:
            return list(self._held.values())

    def acquire(self, device: Device, cores: tuple[int, ...] = ()) -> OpenSession:
        """Return a session on `device`; raises a TritonError that says why the model cannot be opened there.

        `cores` are those that the calling thread is bound to, if it is: the threads of the session are too.
        """
        providers = providers_for(self._model.config, self._model.parameters, device)
        with self._lock:
            described = self._described.pop(device, None)
            if cores:
                described = None  # its threads run anywhere
            if not shares_session(providers):
                return described or self._open(device, providers, cores)
            key = device, cores
            if key not in self._kept:
                self._kept[key] = described or self._open(device, providers, cores)
            return self._kept[key]

    def _open(self, device: Device, providers: list[Provider], cores: tuple[int, ...]) -> OpenSession:
        weight = file_bytes(self._model.path)
        with measured(device, weight) as measure:
            opened = open_session(self._model, providers, cores, weight)
        self._held[opened.session] = measure.usage
        return opened

    def describe(self, device: Device) -> Signature:
        """Return the model's signature; the session opened for it serves the first instance on `device`."""
        opened = self.acquire(device)
        with self._lock:
            self._kept.pop((device, ()), None)
            self._described[device] = opened
        return opened.signature

    def close(self) -> None:
        """Forget the sessions; they are freed when the last instance has gone."""
        with self._lock:
            self._kept.clear()
            self._described.clear()


def model_file(version_folder: Path, default_filename: str, model: str) -> Path:
    """Return the file of a model, which may lie in a folder of the file's name; raises Unavailable where there is none."""
    path = resolve_model_file(default_filename or DEFAULT_FILENAME, version_folder, version_folder.parent)
    if path.is_dir():
        path /= DEFAULT_FILENAME
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{model}'")
    return path


def first_device(config: ModelConfig) -> Device:
    """Return the device on which a model is opened to read its signature: a GPU where any group asks for one."""
    for group in config.instance_group:
        if group.kind == group.KIND_GPU:
            return Device("GPU", group.gpus[0] if group.gpus else 0)
    return Device("CPU", 0)


def open_session(
    model: ModelContext, providers: list[Provider], cores: tuple[int, ...] = (), weight: int = SMALL_BYTES
) -> OpenSession:
    """Open the model's file with `providers`; raises a TritonError with ONNX Runtime's text where that fails.

    With `cores` there are as many threads as those, unless the model says how many: of its own accord ONNX Runtime would spread them over all cores.
    `weight` is the size of the model's files: where many small models are open, a further one has no threads of its own (`small_models`).
    """
    path = model_file(model.path, model.config.default_model_filename, model.name)
    settings = session_settings(model.config, model.parameters)
    settings = replace(settings, intra_op_threads=settings.intra_op_threads or len(cores))
    assert isinstance(model.options, OnnxOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
    onnxruntime = runtime(model.options)
    check_available(model.name, providers, onnxruntime.get_available_providers())
    wanted = [name for name, _ in providers]
    if CUDA in wanted:
        onnxruntime.preload_dlls()  # CUDA and cuDNN from their Python packages, where those are installed
    counted = _counts_threads(settings, model.options, weight)
    if counted and not small_model_threads.take(model.options.small_model_threads):
        counted, settings = False, replace(settings, intra_op_threads=1)
    try:
        options = _session_options(onnxruntime, settings, model)
        session = _create(onnxruntime, path, options, providers)
        if counted:
            small_model_threads.bind(session)
            counted = False
        signature = signature_of(session)
    except Exception as error:
        raise failure_of(error) from error
    finally:
        if counted:
            small_model_threads.release()
    lacking = [name for name in wanted if name not in session.get_providers()]
    if lacking:
        raise Unavailable(
            f"model '{model.name}' needs ONNX Runtime's {lacking[0]}, which is installed and did not start: a library of it is"
            " missing or does not fit the driver; ONNX Runtime's message in the log names it"
        )
    return OpenSession(session, signature, _run_options(onnxruntime, settings.run_entries), onnxruntime.OrtValue)


def _counts_threads(settings: SessionSettings, options: OnnxOptions, weight: int) -> bool:
    """Return whether a session is that of a small model that does not say how many threads it has."""
    asked = any(key.startswith("session.intra_op_thread") for key in settings.session_entries)
    return (
        weight < SMALL_BYTES and settings.intra_op_threads == 0 and not asked and not options.enable_global_threadpool
    )


def _session_options(onnxruntime: Any, settings: SessionSettings, model: ModelContext) -> Any:
    options = onnxruntime.SessionOptions()
    options.logid = model.name
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings.graph_level)
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
        # Without fallback: a provider that fails is an error, not a model that silently runs on the CPU.
        return onnxruntime.InferenceSession(str(path), options, providers=providers, enable_fallback=0)

    with _alone if opens_alone(providers) else nullcontext():
        return create()


def _run_options(onnxruntime: Any, entries: Mapping[str, str]) -> Any:
    if not entries:
        return None
    options = onnxruntime.RunOptions()
    for key, value in entries.items():
        options.add_run_config_entry(key, value)
    return options
