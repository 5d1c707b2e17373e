"""Reads and compiles one model version, and shares what is compiled among its instances."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tritonpy import MemoryUsage, ModelContext, Unavailable, install_command
from tritonpy_backend_openvino.check import check_inputs, check_outputs
from tritonpy_backend_openvino.devices import check_device, check_precision, device_for, weights_of
from tritonpy_backend_openvino.failures import told_as
from tritonpy_backend_openvino.files import model_file
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.passing import passing
from tritonpy_backend_openvino.settings import Properties, Settings, settings_of
from tritonpy_backend_openvino.shape_check import ShapeCheck
from tritonpy_backend_openvino.shaping import convert, input_shapes, reshape
from tritonpy_backend_openvino.signature import Signature, signature_of

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(frozen=True, slots=True)
class Compiled:
    """An `openvino.CompiledModel` that was compiled with `settings`, and what it says of itself; `openvino` is the framework.

    `requests` are the infer requests that an instance needs to keep its share of the device busy. Its weights are `memory`. What it computes depends on
    the executions before where it is `stateful`. `passing` are the outputs that are inputs under another name, by their numbers. `shapes` knows
    which shapes it takes.
    """

    openvino: Any
    model: Any
    signature: Signature
    settings: Settings
    requests: int
    memory: MemoryUsage
    stateful: bool
    passing: Mapping[int, int]
    shapes: ShapeCheck

    def make_requests(self) -> list[Any]:
        """Return the infer requests of one instance."""
        with told_as("creating infer request object"):
            return [self.model.create_infer_request() for _ in range(self.requests)]


class OpenedModel:
    """One model version: compiled once per device and cores of a host policy, when first asked for.

    It has an `openvino.Core` of its own, because extensions are loaded into a core for good. Any thread may call.
    """

    def __init__(self, model: ModelContext) -> None:
        """Look at the parameters; raises InvalidArgument, or Unavailable where OpenVINO cannot be imported."""
        assert isinstance(model.options, OpenVinoOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
        self._context = model
        self._settings = settings_of(model.parameters)
        self._cache_dir = model.options.cache_dir
        self._openvino = framework()
        self._core = self._openvino.Core()
        self._lock = threading.Lock()
        self._read: Any = None  # what was read for the signature, until it is compiled
        self._compiled: dict[tuple[str, tuple[int, ...]], Compiled] = {}
        if self._settings.cpu_extension:
            with told_as(" loading custom CPU extensions"):
                self._core.add_extension(self._settings.cpu_extension)

    def signature(self) -> Signature:
        """Return what the model's file says; the model read for it is compiled for the first instance."""
        with self._lock:
            if self._read is None:
                self._read = self._read_model()
            return signature_of(self._read)

    def acquire(self, config: ModelConfig, kind: str, cores: tuple[int, ...]) -> Compiled:
        """Return the model compiled for an instance of `kind` whose thread is bound to `cores`, if it is bound.

        `config` is the whole configuration: the one that this was made with may have been completed since. Raises a TritonError that says
        why the model cannot run there.
        """
        device = device_for(kind, self._settings, self._context.name)
        with self._lock:
            found = self._compiled.get((device, cores))
            if found is None:
                found = self._compiled[device, cores] = self._compile(config, device, cores)
            return found

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the bytes of the weights, once for each time that the model is compiled."""
        return [
            compiled.memory for compiled in tuple(self._compiled.values())
        ]  # without the lock: who compiles has it for long

    def close(self) -> None:
        """Forget what is compiled; it is freed when the last instance has gone."""
        with self._lock:
            self._compiled.clear()
            self._read = None

    def _read_model(self) -> Any:
        path = model_file(self._context.path, self._context.config.default_model_filename, self._context.name)
        with told_as("reading model", path):
            return self._core.read_model(str(path))

    def _compile(self, config: ModelConfig, device: str, cores: tuple[int, ...]) -> Compiled:
        context, settings = self._context, self._settings
        check_device(device, self._core.available_devices, context.name)
        model = self._prepared(config)
        with told_as("loading model"):
            compiled = self._core.compile_model(model, device, self._properties(config, cores))
            if settings.precision:
                check_precision(compiled, self._core, settings.precision, context.name)
            wanted = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
            trial = compiled.create_infer_request()
            signature = signature_of(model)
            return Compiled(
                self._openvino, compiled, signature, settings,
                requests=max(1, wanted // (1 if cores else self._instances(config))),
                memory=weights_of(model, compiled),
                stateful=bool(trial.query_state()),
                passing=passing(self._openvino, trial, compiled),
                shapes=ShapeCheck(self._openvino, model, signature, batched=config.max_batch_size > 0),
            )  # fmt: skip

    def _prepared(self, config: ModelConfig) -> Any:
        """Return the model as the configuration wants it; raises a TritonError where it does not fit."""
        model, self._read = self._read or self._read_model(), None
        settings, signature = self._settings, signature_of(model)
        check_inputs(config, signature, settings.reshapes)
        reshape(self._openvino, model, input_shapes(config, signature, settings.fixed_batch, settings.reshapes))
        shaped = signature_of(model)
        check_outputs(config, shaped)
        return convert(self._openvino, model, config, shaped)

    def _properties(self, config: ModelConfig, cores: tuple[int, ...]) -> dict[str, Any]:
        given = dict(self._settings.properties)
        if cores:
            given.setdefault("INFERENCE_NUM_THREADS", len(cores))
        else:
            given = beside_each_other(given, self._instances(config))
        given["ALLOW_AUTO_BATCHING"] = config.max_batch_size > 0 and not self._settings.fixed_batch
        if self._cache_dir:
            given["CACHE_DIR"] = self._cache_dir
        return given

    def _instances(self, config: ModelConfig) -> int:
        """Return how many instances share what is compiled here."""
        return 1 if self._context.parameters.get("isolation") == "process" else instances_of(config)


def beside_each_other(properties: Properties, instances: int) -> dict[str, Any]:
    """Return `properties` with a stream for each of `instances`, unless they say how many streams or which hint; each has the threads that they name."""
    found = dict(properties)
    if instances > 1 and not {"NUM_STREAMS", "PERFORMANCE_HINT"} & found.keys():
        found["NUM_STREAMS"] = instances
        if "INFERENCE_NUM_THREADS" in found:
            found["INFERENCE_NUM_THREADS"] = int(found["INFERENCE_NUM_THREADS"]) * instances
    return found


def instances_of(config: ModelConfig) -> int:
    """Return how many instances the configuration asks for."""
    return sum(max(group.count, 1) for group in config.instance_group if not group.passive) or 1


def framework() -> Any:
    """Import OpenVINO; raises Unavailable that says what to install where that fails."""
    try:
        import openvino
    except ImportError as error:
        raise Unavailable(
            f"OpenVINO cannot be imported ({error}): {install_command('tritonpy-backend-openvino')}"
        ) from error
    return openvino
