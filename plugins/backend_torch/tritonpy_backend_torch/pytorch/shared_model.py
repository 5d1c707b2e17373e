"""Networks of one model version, one per instance or shared by the instances on a device."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tritonpy import MemoryUsage, ModelContext
from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.errors import load_error
from tritonpy_backend_torch.model_files import ModelFiles
from tritonpy_backend_torch.pytorch.aoti import AotiNetwork
from tritonpy_backend_torch.pytorch.exported import ExportedNetwork
from tritonpy_backend_torch.pytorch.network import LoadSpec, Network
from tritonpy_backend_torch.pytorch.pickled_module import pickled_network
from tritonpy_backend_torch.pytorch.python_class import class_network
from tritonpy_backend_torch.pytorch.torchscript import TorchScriptNetwork
from tritonpy_backend_torch.pytorch.weight_memory import weight_memory
from tritonpy_backend_torch.settings import ModelSettings

_LOADERS: Mapping[ArchiveFormat, Callable[[LoadSpec], Network]] = {
    ArchiveFormat.TORCHSCRIPT: TorchScriptNetwork,
    ArchiveFormat.EXPORTED: ExportedNetwork,
    ArchiveFormat.AOTI: AotiNetwork,
    ArchiveFormat.PYTHON: class_network,
    ArchiveFormat.PICKLE: pickled_network,
}


class SharedModel:
    """Loads networks and keeps those that are shared; thread-safe.

    A network lives while an instance or this object refers to it.
    """

    def __init__(self, model: ModelContext, files: ModelFiles, settings: ModelSettings) -> None:
        self.files = files
        self.settings = settings
        self._model = model
        self._lock = threading.Lock()
        self._shared: dict[Any, Network] = {}
        self._described: dict[Any, Network] = {}

    def describe(self, device: Any) -> Network:
        """Return a network on `device` for its signature.

        The first instance there takes it over.
        """
        network = self._open(device)
        with self._lock:
            self._described[device] = network
        return network

    def acquire(self, device: Any) -> Network:
        """Return a network on `device`, or placed by the model if `device` is None.

        Raises a `TritonError` if the network cannot be loaded.
        """
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

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory of the shared networks."""
        return weight_memory(
            [tensor for network in list(self._shared.values()) for tensor in network.weights()]
        )

    def close(self) -> None:
        """Drop the references to the networks, and collect garbage.

        The parts of a program refer to each other, so networks of closed instances would stay in
        memory for a while.
        """
        with self._lock:
            self._shared.clear()
            self._described.clear()
        gc.collect()

    def _open(self, device: Any) -> Network:
        model = self._model
        runners = (
            sum(group.count for group in model.config.instance_group)
            if self.settings.weight_sharing
            else 1
        )
        load_spec = LoadSpec(
            model.name, self.files, self.settings, device, model.log, max(runners, 1)
        )
        try:
            return _LOADERS[self.files.model_format](load_spec)
        except Exception as error:
            raise load_error(model.name, error) from error
