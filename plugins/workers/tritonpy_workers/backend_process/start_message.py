"""The START message, which describes what a worker process runs."""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tritonpy import InstanceContext, Internal, ModelContext
from tritonpy.config import DeviceSettings
from tritonpy.execution import LOGGER
from tritonpy_ipc import VERSION
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_workers.backend_process.class_reference import reference_of


class StartModel(msgspec.Struct):
    """A `ModelContext` as plain values; `config` is the serialized message in base64.

    `device` is the "module:Class" of its GPUs, `devices` their settings, `gpus` their ids.
    """

    name: str
    version: int
    config: str
    directory: str
    path: str
    backend_directory: str | None
    parameters: dict[str, str]
    output_types: dict[str, str]
    options: dict[str, Any]
    default_max_batch_size: int
    device: str
    devices: DeviceSettings
    gpus: list[int]

    @classmethod
    def of(cls, model: ModelContext) -> StartModel:
        """Return `model` as plain values, without its live objects."""
        return cls(
            model.name,
            model.version,
            base64.b64encode(model.config.SerializeToString()).decode(),
            str(model.directory),
            str(model.path),
            None if model.backend_directory is None else str(model.backend_directory),
            dict(model.parameters),
            dict(model.output_types),
            msgspec.to_builtins(model.options),
            model.default_max_batch_size,
            reference_of(type(model.gpus), "device"),
            model.gpus.settings,
            model.gpus.ids,
        )

    def parsed_config(self) -> ModelConfig:
        """Return the configuration as a message."""
        return ModelConfig.FromString(base64.b64decode(self.config))

    def backend_folder(self) -> Path | None:
        """Return the folder of a Python-based backend."""
        return None if self.backend_directory is None else Path(self.backend_directory)


class StartInstance(msgspec.Struct):
    """An `InstanceContext` as plain values."""

    name: str
    kind: str
    device_id: int
    index: int
    profiles: tuple[str, ...]
    passive: bool
    secondary_devices: tuple[tuple[str, int], ...]
    host_policy: str
    cores: tuple[int, ...]

    @classmethod
    def of(cls, instance: InstanceContext) -> StartInstance:
        """Return the attributes of `instance` that other processes can use."""
        return cls(**{field: getattr(instance, field) for field in cls.__struct_fields__})

    def context(self) -> InstanceContext:
        """Return the context for the backend."""
        return InstanceContext(**msgspec.structs.asdict(self))


class InstanceStartMessage(msgspec.Struct):
    """The START message of an instance.

    `backend` is "module:Class", `search` the module search path of the server, `log_level` the
    lowest logging level that the server writes.
    """

    version: int
    kind: str
    backend: str
    search: list[str]
    model: StartModel
    instance: StartInstance
    log_level: int

    @classmethod
    def of(
        cls, model: ModelContext, backend: str, instance: InstanceContext
    ) -> InstanceStartMessage:
        """Return the message for an instance of `backend`."""
        return cls(
            VERSION,
            "backend",
            backend,
            list(sys.path),
            StartModel.of(model),
            StartInstance.of(instance),
            logging.getLogger(LOGGER).getEffectiveLevel(),
        )

    @classmethod
    def read(cls, extras: Mapping[str, Any]) -> InstanceStartMessage:
        """Return the message in a frame. Raises `Internal` if the server has another version."""
        if extras.get("version") != VERSION or extras.get("kind") != "backend":
            raise Internal(
                f"the server uses version {extras.get('version')} of the worker protocol, "
                f"but the worker has version {VERSION}: "
                "was tritonpy replaced while the server ran?"
            )
        return msgspec.convert(extras, cls)
