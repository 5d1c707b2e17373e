"""Compiled models of one model version, shared by its instances."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tritonpy import MemoryUsage, ModelContext, Unavailable
from tritonpy.plugins import install_command
from tritonpy_backend_openvino.config_check import check_inputs, check_outputs
from tritonpy_backend_openvino.conversion import convert, input_shapes, reshape
from tritonpy_backend_openvino.devices import (
    check_device,
    check_precision,
    select_device,
    weight_memory,
)
from tritonpy_backend_openvino.errors import translate_errors
from tritonpy_backend_openvino.model_file import model_file
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.output_aliases import find_output_aliases
from tritonpy_backend_openvino.settings import ModelSettings, Properties, model_settings
from tritonpy_backend_openvino.shape_check import ShapeChecker
from tritonpy_backend_openvino.signature import Signature, read_signature
from tritonpy_config.processors import default_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """An `openvino.CompiledModel` with its signature and `settings`.

    `openvino` is the imported module. `requests` is the number of infer requests that keep an
    instance's share of the device busy. `memory` is the size of the weights. A `stateful` model
    keeps state between executions. `aliases` maps indexes of outputs that are inputs under another
    name to those inputs. `shapes` checks input shapes.
    """

    openvino: Any
    model: Any
    signature: Signature
    settings: ModelSettings
    requests: int
    memory: MemoryUsage
    stateful: bool
    aliases: Mapping[int, int]
    shapes: ShapeChecker

    def create_requests(self) -> list[Any]:
        """Return the infer requests of one instance."""
        with translate_errors("creating infer request object"):
            return [self.model.create_infer_request() for _ in range(self.requests)]


class SharedModel:
    """One model version, compiled on demand once per device and set of cores.

    It has its own `openvino.Core`, because extensions cannot be removed from a core. Thread-safe.
    """

    def __init__(self, model: ModelContext) -> None:
        """Read the parameters of `model`.

        Raises `InvalidArgument` for invalid parameters, `Unavailable` if OpenVINO cannot be
        imported.
        """
        assert isinstance(model.options, OpenVinoOptions), (  # noqa: S101
            "the core decodes this backend's options: this is a bug"
        )
        self._context = model
        self._settings = model_settings(model.parameters)
        self._cache_dir = model.options.cache_dir
        self._openvino = import_openvino()
        self._core = self._openvino.Core()
        self._lock = threading.Lock()
        self._read: Any = None  # the model read for its signature, until it is compiled
        self._compiled_models: dict[tuple[str, tuple[int, ...]], CompiledModel] = {}
        if self._settings.cpu_extension:
            with translate_errors(" loading custom CPU extensions"):
                self._core.add_extension(self._settings.cpu_extension)

    def signature(self) -> Signature:
        """Return the model's signature; the first instance compiles the model read for it."""
        with self._lock:
            if self._read is None:
                self._read = self._read_model()
            return read_signature(self._read)

    def acquire(self, config: ModelConfig, kind: str, cores: tuple[int, ...]) -> CompiledModel:
        """Return the model compiled for an instance of `kind`, pinned to `cores` if any.

        `config` is the completed configuration, which may differ from the one passed to the
        constructor. Raises a `TritonError` if the model cannot run on the device.
        """
        device = select_device(kind, self._settings, self._context.name)
        with self._lock:
            found = self._compiled_models.get((device, cores))
            if found is None:
                found = self._compiled_models[device, cores] = self._compile(config, device, cores)
            return found

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the size of the weights, once per compiled copy of the model."""
        return [
            compiled.memory for compiled in tuple(self._compiled_models.values())
        ]  # without the lock: it is held during compilation, which takes long

    def close(self) -> None:
        """Drop the references to compiled models.

        Each is freed with the last instance that uses it.
        """
        with self._lock:
            self._compiled_models.clear()
            self._read = None

    def _read_model(self) -> Any:
        path = model_file(
            self._context.path, self._context.config.default_model_filename, self._context.name
        )
        with translate_errors("reading model", path):
            return self._core.read_model(str(path))

    def _compile(self, config: ModelConfig, device: str, cores: tuple[int, ...]) -> CompiledModel:
        context, settings = self._context, self._settings
        check_device(device, self._core.available_devices, context.name)
        model = self._prepare_model(config)
        with translate_errors("loading model"):
            compiled = self._core.compile_model(model, device, self._properties(config, cores))
            if settings.precision:
                check_precision(compiled, self._core, settings.precision, context.name)
            wanted = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
            trial = compiled.create_infer_request()
            signature = read_signature(model)
            return CompiledModel(
                self._openvino, compiled, signature, settings,
                requests=max(1, wanted // (1 if cores else self._instances(config))),
                memory=weight_memory(model, compiled),
                stateful=bool(trial.query_state()),
                aliases=find_output_aliases(self._openvino, trial, compiled),
                shapes=ShapeChecker(self._openvino, model, signature,
                batched=config.max_batch_size > 0),
            )  # fmt: skip

    def _prepare_model(self, config: ModelConfig) -> Any:
        """Return the model converted to its configuration; raise a `TritonError` on a mismatch."""
        model, self._read = self._read or self._read_model(), None
        settings, signature = self._settings, read_signature(model)
        check_inputs(config, signature, settings.reshape_inputs)
        reshape(
            self._openvino,
            model,
            input_shapes(config, signature, settings.fixed_batch, settings.reshape_inputs),
        )
        shaped = read_signature(model)
        check_outputs(config, shaped)
        return convert(self._openvino, model, config, shaped)

    def _properties(self, config: ModelConfig, cores: tuple[int, ...]) -> dict[str, Any]:
        given = dict(self._settings.properties)
        if cores:
            given.setdefault("INFERENCE_NUM_THREADS", len(cores))
        else:
            given = add_streams(given, self._instances(config))
            if threads := default_threads():
                given.setdefault("INFERENCE_NUM_THREADS", threads)
        given["ALLOW_AUTO_BATCHING"] = config.max_batch_size > 0 and not self._settings.fixed_batch
        if self._cache_dir:
            given["CACHE_DIR"] = self._cache_dir
        return given

    def _instances(self, config: ModelConfig) -> int:
        """Return the number of instances that share a compiled model."""
        return (
            1 if self._context.parameters.get("isolation") == "process" else instance_count(config)
        )


def add_streams(properties: Properties, instances: int) -> dict[str, Any]:
    """Return `properties` with one stream per instance, unless they set streams or a hint.

    Each stream gets the configured number of threads.
    """
    found = dict(properties)
    if instances > 1 and not {"NUM_STREAMS", "PERFORMANCE_HINT"} & found.keys():
        found["NUM_STREAMS"] = instances
        if "INFERENCE_NUM_THREADS" in found:
            found["INFERENCE_NUM_THREADS"] = int(found["INFERENCE_NUM_THREADS"]) * instances
    return found


def instance_count(config: ModelConfig) -> int:
    """Return the number of instances in the configuration."""
    return sum(max(group.count, 1) for group in config.instance_group if not group.passive) or 1


def import_openvino() -> Any:
    """Import OpenVINO; raise `Unavailable`, with installation instructions, if it fails."""
    try:
        import openvino
    except ImportError as error:
        raise Unavailable(
            f"OpenVINO cannot be imported ({error}): {install_command('tritonpy-backend-openvino')}"
        ) from error
    return openvino
