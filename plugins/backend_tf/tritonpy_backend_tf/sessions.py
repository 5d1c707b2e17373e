"""The sessions of one model version, shared among its instances."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tritonpy import Internal, InvalidArgument, MemoryUsage, ModelContext, TritonError, Unavailable
from tritonpy_backend_tf.failures import failure_of
from tritonpy_backend_tf.init_ops import init_ops
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.precision import cpu_flags, precision_rewriter
from tritonpy_backend_tf.session import Device, OpenSession, open_session, tensorflow_name
from tritonpy_backend_tf.settings import model_settings
from tritonpy_backend_tf.signature import Signature
from tritonpy_backend_tf.sources import Source, open_source


@dataclass(slots=True)
class Share:
    """A session and how many instances use it."""

    device: Device
    opened: OpenSession
    users: int = 0


class Sessions:
    """Opens the sessions of a model when instances ask for them: one per device and cores, more where MAX_SESSION_SHARE_COUNT asks for it.

    May be used from any thread.
    """

    def __init__(self, model: ModelContext) -> None:
        self._model = model
        self._settings = model_settings(model.config, model.parameters)
        self._lock = threading.RLock()
        self._shares: list[Share] = []

    @cached_property
    def source(self) -> Source:
        """The model's file. Raises a TritonError that says what is wrong with it."""
        return open_source(self._model, self._settings)

    def signature(self) -> Signature:
        """Return what the model says of itself. Raises what `source` raises, Internal, and what TensorFlow raises."""
        with self._lock:
            return self.source.signature

    def acquire(self, device: Device) -> Share:
        """Return a session on `device` for one instance, which gives it back with `release`. Raises a TritonError where the model cannot be opened."""
        most = self._settings.share_count
        with self._lock:
            for share in self._shares:
                if share.device == device and (most is None or share.users < most):
                    break
            else:
                share = Share(device, self._open(device))
                self._shares.append(share)
            share.users += 1
            return share

    def release(self, share: Share) -> None:
        """Close the session when nobody uses it any more."""
        with self._lock:
            share.users -= 1
            if share.users == 0:
                self._shares.remove(share)
                share.opened.close()

    def memory(self) -> Sequence[MemoryUsage]:
        """Return what the sessions hold, an entry for each."""
        with self._lock:
            return [usage for share in self._shares for usage in share.opened.memory]

    def close(self) -> None:
        """Free what reading the model took."""
        if "source" in vars(self):
            self.source.close()

    def _open(self, device: Device) -> OpenSession:
        model, settings = self._model, self._settings
        assert isinstance(model.options, TensorFlowOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
        if settings.memory_limit is not None:
            _check_limit(model, device)
        if device.kind == "CPU" and model.config.optimization.execution_accelerators.gpu_execution_accelerator:
            model.log.warning("GPU Execution Accelerator will be ignored for model instance on CPU")
        rewriter = precision_rewriter(model.config, model.parameters, device.kind, cpu_flags())
        prepare = init_ops(settings.init_ops_file, model.path, model.directory)
        try:
            opened = open_session(self.source, settings, model.options, device, rewriter, prepare)
        except TritonError:
            raise
        except Exception as error:
            text = failure_of(error).message
            raise Internal(f"unable to load model '{model.name}' from {model.path}: {text}") from error
        if device.kind == "GPU" and not opened.sees(tensorflow_name(device, settings)):
            opened.close()
            raise Unavailable(
                f"model '{model.name}' needs GPU {device.id}, which TensorFlow cannot use: pip install 'tensorflow[and-cuda]' instead of another"
                " build; where that is installed, a library of it does not fit the driver, and TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow says"
            )
        return opened


def _check_limit(model: ModelContext, device: Device) -> None:
    if device.kind != "GPU" or model.parameters.get("isolation") != "process":
        raise InvalidArgument(
            f"model '{model.name}': parameter memory_limit_bytes limits what a process takes of a GPU, and nothing else: TensorFlow has one"
            ' pool of memory for each GPU and process. Give the model a GPU and the parameter isolation "process"'
        )
