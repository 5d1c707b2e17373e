"""Sessions of one model version, shared by its instances."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tritonpy import Internal, InvalidArgument, MemoryUsage, ModelContext, TritonError, Unavailable
from tritonpy_backend_tf.errors import to_triton_error
from tritonpy_backend_tf.init_ops import init_ops
from tritonpy_backend_tf.model_source import ModelSource, create_source
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.precision import cpu_flags, precision_rewriter
from tritonpy_backend_tf.session import OpenSession, SessionDevice, open_session, tensorflow_name
from tritonpy_backend_tf.settings import model_settings
from tritonpy_backend_tf.signature import Signature


@dataclass(slots=True)
class SharedSession:
    """A session and the number of instances that use it."""

    device: SessionDevice
    opened: OpenSession
    users: int = 0


class SharedModel:
    """Sessions of one model version, opened on demand.

    Instances share one session per device and set of cores, up to MAX_SESSION_SHARE_COUNT instances
    per session. Thread-safe.
    """

    def __init__(self, model: ModelContext) -> None:
        self._model = model
        self._settings = model_settings(model.config, model.parameters)
        self._lock = threading.RLock()
        self._sessions: list[SharedSession] = []

    @cached_property
    def source(self) -> ModelSource:
        """The model file; raises a `TritonError` if it is missing or invalid."""
        return create_source(self._model, self._settings)

    def signature(self) -> Signature:
        """Return the model's signature.

        Raises `Internal`, the errors of `source`, and TensorFlow's exceptions.
        """
        with self._lock:
            return self.source.signature

    def acquire(self, device: SessionDevice) -> SharedSession:
        """Return a session on `device` for one instance; call `release` when it is no longer used.

        Raises a `TritonError` if the model cannot be opened.
        """
        most = self._settings.share_count
        with self._lock:
            for shared_session in self._sessions:
                if shared_session.device == device and (
                    most is None or shared_session.users < most
                ):
                    break
            else:
                shared_session = SharedSession(device, self._open(device))
                self._sessions.append(shared_session)
            shared_session.users += 1
            return shared_session

    def release(self, shared_session: SharedSession) -> None:
        """Close the session if no other instance uses it."""
        with self._lock:
            shared_session.users -= 1
            if shared_session.users == 0:
                self._sessions.remove(shared_session)
                shared_session.opened.close()

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the memory of each session."""
        with self._lock:
            return [
                usage for shared_session in self._sessions for usage in shared_session.opened.memory
            ]

    def close(self) -> None:
        """Free the resources used for reading the model."""
        if "source" in vars(self):
            self.source.close()

    def _open(self, device: SessionDevice) -> OpenSession:
        model, settings = self._model, self._settings
        assert isinstance(model.options, TensorFlowOptions), (  # noqa: S101
            "the core decodes this backend's options: this is a bug"
        )
        if settings.memory_limit is not None:
            _check_memory_limit(model, device)
        if (
            device.kind == "CPU"
            and model.config.optimization.execution_accelerators.gpu_execution_accelerator
        ):
            model.log.warning("GPU Execution Accelerator will be ignored for model instance on CPU")
        rewriter = precision_rewriter(model.config, model.parameters, device.kind, cpu_flags())
        prepare = init_ops(settings.init_ops_file, model.path, model.directory)
        try:
            opened = open_session(self.source, settings, model.options, device, rewriter, prepare)
        except TritonError:
            raise
        except Exception as error:
            text = to_triton_error(error).message
            raise Internal(
                f"unable to load model '{model.name}' from {model.path}: {text}"
            ) from error
        if device.kind == "GPU" and not opened.has_device(tensorflow_name(device, settings)):
            opened.close()
            raise Unavailable(
                f"model '{model.name}' needs GPU {device.id}, which TensorFlow cannot use: "
                "pip install 'tensorflow[and-cuda]' instead of another"
                " build. If it is installed, one of its libraries is incompatible with the "
                "driver; TF_CPP_MIN_LOG_LEVEL=0 shows TensorFlow's messages"
            )
        return opened


def _check_memory_limit(model: ModelContext, device: SessionDevice) -> None:
    if device.kind != "GPU" or model.parameters.get("isolation") != "process":
        raise InvalidArgument(
            f"model '{model.name}': parameter memory_limit_bytes limits only the GPU memory of a "
            "process: TensorFlow has one"
            " memory pool for each GPU and process. Run the model on a GPU with the parameter "
            'isolation "process"'
        )
