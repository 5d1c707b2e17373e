"""The networks of one model version: one for each instance, or one for all instances of a device."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import MemoryUsage, ModelContext
from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.failures import load_failure
from tritonpy_backend_torch.model_files import ModelFiles
from tritonpy_backend_torch.serving.aoti import CompiledNetwork
from tritonpy_backend_torch.serving.exported import ExportedNetwork
from tritonpy_backend_torch.serving.homes import memory_of
from tritonpy_backend_torch.serving.network import Network, Opening
from tritonpy_backend_torch.serving.pickled import pickled_network
from tritonpy_backend_torch.serving.python_class import class_network
from tritonpy_backend_torch.serving.torchscript import ScriptNetwork
from tritonpy_backend_torch.settings import TorchSettings

_OPENERS: Mapping[Form, Callable[[Opening], Network]] = {
    Form.TORCHSCRIPT: ScriptNetwork,
    Form.EXPORTED: ExportedNetwork,
    Form.AOTI: CompiledNetwork,
    Form.PYTHON: class_network,
    Form.PICKLE: pickled_network,
}


class Networks:
    """Opens networks, and keeps those that are shared. Any thread may ask; a network lives while an instance or this object refers to it."""

    def __init__(self, model: ModelContext, files: ModelFiles, settings: TorchSettings) -> None:
        self.files = files
        self.settings = settings
        self._model = model
        self._lock = threading.Lock()
        self._shared: dict[Any, Network] = {}
        self._described: dict[Any, Network] = {}

    def describe(self, device: Any) -> Network:
        """Return a network on `device` to be asked what it is; the first instance there takes it over."""
        network = self._open(device)
        with self._lock:
            self._described[device] = network
        return network

    def acquire(self, device: Any) -> Network:
        """Return a network on `device` (a `torch.device`, or None: where the model has its parts). Raises a TritonError that says why it cannot be."""
        with self._lock:
            described = self._described.pop(device, None)
            if not self.settings.weight_sharing:
                if described is not None:
                    return described
            elif described is not None or device in self._shared:
                self._model.log.info("Reusing the model for instance '%s'", self._model.name)
                return self._shared.setdefault(device, described or self._shared[device])
            else:
                return self._shared.setdefault(device, self._open(device))
        return self._open(device)

    def memory(self) -> list[MemoryUsage]:
        """Return what the shared networks hold."""
        return memory_of([tensor for network in list(self._shared.values()) for tensor in network.weights()])

    def close(self) -> None:
        """Forget the networks, those of the instances that have gone too: a program's parts refer to each other, and would stay for a while."""
        with self._lock:
            self._shared.clear()
            self._described.clear()
        gc.collect()

    def _open(self, device: Any) -> Network:
        model = self._model
        runners = sum(group.count for group in model.config.instance_group) if self.settings.weight_sharing else 1
        opening = Opening(model.name, self.files, self.settings, device, model.log, max(runners, 1))
        try:
            return _OPENERS[self.files.form](opening)
        except Exception as error:
            raise load_failure(model.name, error) from error
