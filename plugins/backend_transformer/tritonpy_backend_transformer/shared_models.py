"""A version of a model: its folder, and the CTranslate2 models that its instances share."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import InstanceContext, InvalidArgument, MemoryUsage, ModelContext
from tritonpy_backend_transformer.devices import DeviceSet, open_model
from tritonpy_backend_transformer.fields import Fields, fields_of
from tritonpy_backend_transformer.memory import weight_bytes
from tritonpy_backend_transformer.model_folder import (
    FolderKind,
    ModelFolder,
    find_folder,
    read_folder,
)
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Settings, check_pooling, read_settings

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class SharedModels:
    """Opens the model once per device (and set of cores), so its weights are in memory once.

    `acquire` may be called from any thread.
    """

    def __init__(self, model: ModelContext) -> None:
        """Read the model's folder. Raises a `TritonError` if it is invalid."""
        path = find_folder(model.path, model.config.default_model_filename, model.name)
        self.folder: ModelFolder = read_folder(path)
        self.fields: Fields = fields_of(self.folder)
        self.settings: Settings = read_settings(
            model.parameters, self.folder.kind is FolderKind.ENCODER_DECODER
        )
        check_pooling(self.settings, self.folder.has_pooler)
        self._config = model.config
        self._parameters = model.parameters
        self._lock = threading.Lock()
        self._opened: dict[tuple[DeviceSet, tuple[int, ...]], Any] = {}

    def acquire(self, instance: InstanceContext, config: ModelConfig) -> Any:
        """Return the CTranslate2 model for `instance`.

        Raises a `TritonError` if it cannot be opened.
        """
        device_set = _device_set(instance, self._parameters)
        with self._lock:
            key = device_set, instance.cores
            if key not in self._opened:
                instances = instances_on(config, instance)
                lanes = 1 if self.folder.kind is FolderKind.ENCODER else self.settings.lane_count
                threads = self.settings.threads or threads_for(instances, instance.cores)
                self._opened[key] = open_model(
                    self.folder, self.settings, device_set, instances * lanes, threads
                )
            return self._opened[key]

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the size of the weights on each device."""
        with self._lock:
            opened = list(self._opened.values())
        return [
            MemoryUsage(
                "CPU" if model.device == "cpu" else "GPU",
                index,
                weight_bytes(self.folder.file, model.compute_type),
            )
            for model in opened
            for index in model.device_index
        ]

    def close(self) -> None:
        """Release the CTranslate2 models. They are freed when the last instance is closed."""
        with self._lock:
            self._opened.clear()


def threads_for(instances: int, cores: tuple[int, ...]) -> int:
    """Return the default number of threads per batch: the cores divided among the instances."""
    return max(1, (len(cores) or len(os.sched_getaffinity(0))) // instances)


def instances_on(config: ModelConfig, instance: InstanceContext) -> int:
    """Return the number of instances that share the device of `instance`."""
    kinds = {"CPU": 2, "GPU": 1, "MODEL": 3}
    return max(
        1,
        sum(
            group.count
            for group in config.instance_group
            if group.kind == kinds[instance.kind]
            and (instance.kind != "GPU" or instance.device_id in group.gpus)
        ),
    )


def _device_set(instance: InstanceContext, parameters: Mapping[str, str]) -> DeviceSet:
    if instance.kind == "GPU":
        return DeviceSet("cuda", (instance.device_id,))
    if instance.kind == "CPU":
        return DeviceSet("cpu", (0,))
    given = parameters.get("GPU_DEVICE_IDS", "")
    count = runtime().get_cuda_device_count()
    return devices(given, count)


def devices(given: str, count: int) -> DeviceSet:
    """Return the devices of a KIND_MODEL instance: the GPUs `given` (`0,1`), all GPUs, or the CPU.

    Raises `InvalidArgument` if `given` is not a list of different GPUs.
    """
    if not given:
        return DeviceSet("cuda", tuple(range(count))) if count else DeviceSet("cpu", (0,))
    try:
        indexes = tuple(int(each) for each in given.split(","))
    except ValueError:
        indexes = ()
    if not indexes or min(indexes) < 0 or len(set(indexes)) < len(indexes):
        raise InvalidArgument(
            f"'GPU_DEVICE_IDS' must be different GPU numbers such as 0,1, not '{given}'"
        )
    return DeviceSet("cuda", indexes)
