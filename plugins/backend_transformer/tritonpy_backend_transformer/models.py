"""One version of a model: what its folder says, and the library's objects that its instances share."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import InstanceContext, InvalidArgument, MemoryUsage, ModelContext
from tritonpy_backend_transformer.fields import Fields, fields_of
from tritonpy_backend_transformer.folder import Kind, ModelFolder, find_folder, read_folder
from tritonpy_backend_transformer.memory import weight_bytes
from tritonpy_backend_transformer.opening import Place, open_model
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Settings, check_pooling, settings

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class Models:
    """Opens the model once for each device (and cores of a host policy), however many instances there are: its weights are in memory once.

    `acquire` may be called from any thread.
    """

    def __init__(self, model: ModelContext) -> None:
        """Read the model's folder; raises a TritonError that says what is wrong with it."""
        path = find_folder(model.path, model.config.default_model_filename, model.name)
        self.folder: ModelFolder = read_folder(path)
        self.fields: Fields = fields_of(self.folder)
        self.settings: Settings = settings(model.parameters, self.folder.kind is Kind.ENCODER_DECODER)
        check_pooling(self.settings, self.folder.has_pooler)
        self._config = model.config
        self._parameters = model.parameters
        self._lock = threading.Lock()
        self._opened: dict[tuple[Place, tuple[int, ...]], Any] = {}

    def acquire(self, instance: InstanceContext, config: ModelConfig) -> Any:
        """Return the library's object for `instance`; raises a TritonError that says why there is none."""
        place = _place(instance, self._parameters)
        with self._lock:
            key = place, instance.cores
            if key not in self._opened:
                instances = instances_on(config, instance)
                lanes = 1 if self.folder.kind is Kind.ENCODER else self.settings.parallel
                threads = self.settings.threads or threads_for(instances, instance.cores)
                self._opened[key] = open_model(self.folder, self.settings, place, instances * lanes, threads)
            return self._opened[key]

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the bytes of the weights on each device."""
        with self._lock:
            opened = list(self._opened.values())
        return [
            MemoryUsage(
                "CPU" if model.device == "cpu" else "GPU", index, weight_bytes(self.folder.file, model.compute_type)
            )
            for model in opened
            for index in model.device_index
        ]

    def close(self) -> None:
        """Forget the library's objects; they are freed when the last instance has gone."""
        with self._lock:
            self._opened.clear()


def threads_for(instances: int, cores: tuple[int, ...]) -> int:
    """Return how many threads a batch gets where nobody says: the cores, parted among the instances. The lanes of an instance share them."""
    return max(1, (len(cores) or len(os.sched_getaffinity(0))) // instances)


def instances_on(config: ModelConfig, instance: InstanceContext) -> int:
    """Return how many instances of a model share the device of `instance`."""
    kinds = {"CPU": 2, "GPU": 1, "MODEL": 3}
    return max(
        1,
        sum(
            group.count
            for group in config.instance_group
            if group.kind == kinds[instance.kind] and (instance.kind != "GPU" or instance.device_id in group.gpus)
        ),
    )


def _place(instance: InstanceContext, parameters: Mapping[str, str]) -> Place:
    if instance.kind == "GPU":
        return Place("cuda", (instance.device_id,))
    if instance.kind == "CPU":
        return Place("cpu", (0,))
    given = parameters.get("GPU_DEVICE_IDS", "")
    count = runtime().get_cuda_device_count()
    return devices(given, count)


def devices(given: str, count: int) -> Place:
    """Return the devices of an instance of KIND_MODEL: the GPUs in `given` (`0,1`), or all `count` there are, or else the CPU. Raises InvalidArgument."""
    if not given:
        return Place("cuda", tuple(range(count))) if count else Place("cpu", (0,))
    try:
        indexes = tuple(int(each) for each in given.split(","))
    except ValueError:
        indexes = ()
    if not indexes or min(indexes) < 0 or len(set(indexes)) < len(indexes):
        raise InvalidArgument(
            f"'GPU_DEVICE_IDS' must be numbers of GPUs such as 0,1 and no two the same, not '{given}'"
        )
    return Place("cuda", indexes)
