"""TensorRT's bindings on simulated GPUs, as documented and strict about misuse."""

from __future__ import annotations

import enum
import json
import weakref
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from .functions import FUNCTIONS
from .gpus import Event, Machine, Misuse, Stream
from .plans import VERSION

_DTYPES = {
    "FLOAT": np.float32, "HALF": np.float16, "INT8": np.int8, "UINT8": np.uint8, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_, "FP8": np.uint8,
}  # fmt: skip
DataType = enum.Enum(
    "DataType",
    ["FLOAT", "HALF", "BF16", "INT8", "INT32", "INT64", "BOOL", "UINT8", "FP8", "INT4", "FP4"],
)
TensorIOMode = enum.Enum("TensorIOMode", ["NONE", "INPUT", "OUTPUT"])
ExecutionContextAllocationStrategy = enum.Enum(
    "ExecutionContextAllocationStrategy", ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"]
)


class Dims(tuple):
    """`tensorrt.Dims`."""

    __slots__ = ()

    def __new__(cls, sizes: Any) -> Dims:
        return super().__new__(cls, map(int, sizes))


class ILogger:
    Severity = enum.Enum("Severity", ["INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"])
    made = False

    def __init__(self) -> None:
        self.made = True


class IGpuAllocator:
    made = False

    def __init__(self) -> None:
        self.made = True


class IOutputAllocator:
    made = False

    def __init__(self) -> None:
        self.made = True


class Engine:
    """`ICudaEngine`."""

    def __init__(self, runtime: Any, described: dict[str, Any]) -> None:
        self.runtime, self.machine = runtime, runtime.machine
        self.device = self.machine.device
        self.tensors = {each["name"]: each for each in described["tensors"]}
        self.profiles = described["profiles"]
        self.function = FUNCTIONS[described["function"]]
        self.activations = described.get("activations", 1024)
        self.streamable_weights_size = described.get("streamable", 0)
        self.weight_streaming_budget_v2 = self.streamable_weights_size
        self.contexts = 0
        self.num_io_tensors, self.num_optimization_profiles = len(self.tensors), len(self.profiles)

    def get_weight_streaming_automatic_budget(self) -> int:
        return self.streamable_weights_size // 2

    def get_tensor_name(self, index: int) -> str:
        return list(self.tensors)[index]

    def get_tensor_mode(self, name: str) -> Any:
        return TensorIOMode[self.tensors[name]["mode"]]

    def get_tensor_dtype(self, name: str) -> Any:
        return DataType[self.tensors[name]["dtype"]]

    def get_tensor_shape(self, name: str) -> Dims:
        return Dims(self.tensors[name]["shape"])

    def is_shape_inference_io(self, name: str) -> bool:
        return self.tensors[name].get("shape_io", False)

    def get_tensor_vectorized_dim(self, name: str) -> int:
        return self.tensors[name].get("packing", [-1])[0]

    def get_tensor_components_per_element(self, name: str) -> int:
        return self.tensors[name].get("packing", [-1, -1])[1]

    def get_tensor_format_desc(self, name: str) -> str:
        return (
            "Row major linear format"
            if "packing" not in self.tensors[name]
            else "Channel vectorized row major format"
        )

    def get_tensor_profile_shape(self, name: str, index: int) -> list[Dims]:
        if self.is_shape_inference_io(name):
            return [self.get_tensor_shape(name)] * 3
        return [
            Dims(shape)
            for shape in self.profiles[index].get(name, [self.tensors[name]["shape"]] * 3)
        ]

    def get_tensor_profile_values(self, index: int, name: str) -> list[list[int]]:
        assert self.is_shape_inference_io(name)
        return self.profiles[index][name]

    def create_execution_context(self, strategy: Any) -> ExecutionContext | None:
        assert strategy in ExecutionContextAllocationStrategy
        address = self.runtime.take(self.activations)
        if not address:
            self.runtime.say("ERROR", "Error Code 2: OutOfMemory (no further information)")
            return None
        self.contexts += 1
        context = ExecutionContext(self)
        weakref.finalize(context, self.runtime.give, address)
        return context

    def inputs(self) -> list[str]:
        return [name for name, each in self.tensors.items() if each["mode"] == "INPUT"]

    def itemsize(self, name: str) -> int:
        return np.dtype(_DTYPES[self.tensors[name]["dtype"]]).itemsize

    def memory_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        if "packing" not in self.tensors[name]:
            return tuple(shape)
        at, size = self.tensors[name]["packing"]
        return (*shape[:at], -(-shape[at] // size) * size, *shape[at + 1 :])


class ExecutionContext:
    """`IExecutionContext`."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.machine = engine, engine.machine
        self.profile = 0
        self.addresses: dict[str, int] = {}
        self.allocators: dict[str, Any] = {}
        self.consumed = 0
        self.shapes = {
            name: engine.get_tensor_shape(name)
            for name in engine.inputs()
            if -1 not in engine.get_tensor_shape(name)
        }

    def set_optimization_profile_async(self, index: int, stream: int) -> bool:
        if index >= len(self.engine.profiles) or self.machine.get(stream, Stream) is None:
            raise RuntimeError("Error in set optimization profile async.")
        self.profile = index
        return True

    def set_input_shape(self, name: str, shape: Any) -> bool:
        least, _, most = self.engine.get_tensor_profile_shape(name, self.profile)
        fits = len(shape) == len(most) and all(
            low <= size <= high for low, size, high in zip(least, shape, most, strict=True)
        )
        if fits:
            self.shapes[name] = Dims(shape)
        else:
            self.engine.runtime.say(
                "ERROR",
                f"IExecutionContext::setInputShape: Error Code 3: {name} does not satisfy the profile",
            )
        return fits

    def set_tensor_address(self, name: str, address: int) -> bool:
        if name in self.engine.tensors:
            self.addresses[name] = address
        return name in self.engine.tensors

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        assert allocator.made, "the base class was not initialised"
        self.allocators[name] = allocator
        return True

    def set_input_consumed_event(self, event: int) -> bool:
        self.consumed = event
        return True

    def infer_shapes(self) -> list[str]:
        lacking = [name for name in self.engine.inputs() if name not in self.shapes]
        return lacking + [
            name
            for name in self.engine.inputs()
            if self._is_value(name) and name not in self.addresses
        ]

    def get_tensor_shape(self, name: str) -> Dims:
        if name in self.shapes:
            return self.shapes[name]
        if self.infer_shapes():
            return self.engine.get_tensor_shape(name)
        return Dims(self.engine.function.shapes(dict(self.shapes), self._values())[name])

    def get_max_output_size(self, name: str) -> int:
        shape = self.get_tensor_shape(name)
        return (
            -1
            if -1 in shape
            else prod(self.engine.memory_shape(name, shape)) * self.engine.itemsize(name)
        )

    def execute_async_v3(self, stream: int) -> bool:
        with self.machine.lock:
            target = self.machine.get(stream, Stream)
            if (
                target is None
                or self.infer_shapes()
                or target.device != self.engine.device
                or self.machine.refusals.pop("enqueue", 0)
            ):
                self.engine.runtime.say(
                    "ERROR", "IExecutionContext::enqueueV3: Error Code 3: API Usage Error"
                )
                if target is not None:
                    target.broken = True
                return False
            self._put(target)
            return True

    def _put(self, stream: Stream) -> None:
        machine, engine = self.machine, self.engine
        shapes, values, addresses = dict(self.shapes), self._values(), dict(self.addresses)
        outputs = {
            name: shape
            for name, shape in engine.function.shapes(shapes, values).items()
            if name not in engine.inputs()
        }
        read: dict[str, np.ndarray] = {}

        def take(_stream: Stream) -> None:
            for name in engine.inputs():
                read[name] = (
                    values[name]
                    if self._is_value(name)
                    else self._view(name, addresses[name], shapes[name]).copy()
                )

        def give(_stream: Stream) -> None:
            for name, array in engine.function.run(dict(read), values).items():
                place = found.get(name, addresses.get(name, 0))
                self._view(name, place, array.shape)[...] = array

        found: dict[str, int] = {}
        machine.put(stream, take)
        if self.consumed and stream.graph is None:
            event = machine.get(self.consumed, Event)
            if event is None:
                raise Misuse("the event for consumed inputs was destroyed")
            machine.record(event, stream)
        if any(-1 in shape for shape in outputs.values()):
            machine.drain(stream)  # their size is known when they are computed
            for name, array in engine.function.run(dict(read), values).items():
                allocator = self.allocators[name]
                found[name] = allocator.reallocate_output_async(
                    name, addresses.get(name, 0), array.nbytes, 256, 0
                )
                allocator.notify_shape(name, Dims(array.shape))
        machine.put(stream, give)

    def _view(self, name: str, address: int, shape: tuple[int, ...]) -> np.ndarray:
        memory = self.engine.memory_shape(name, shape)
        dtype = np.dtype(_DTYPES[self.engine.tensors[name]["dtype"]])
        device = None if self.engine.is_shape_inference_io(name) else self.engine.device
        data = (
            self.machine.view(address, prod(memory) * dtype.itemsize, device)
            .view(dtype)
            .reshape(memory)
        )
        return data[tuple(slice(size) for size in shape)]

    def _is_value(self, name: str) -> bool:
        return self.engine.is_shape_inference_io(name)

    def _values(self) -> dict[str, np.ndarray]:
        names = [name for name in self.engine.inputs() if self._is_value(name)]
        return {
            name: self._view(name, self.addresses[name], self.shapes[name]).copy() for name in names
        }


class Runtime:
    """`IRuntime`; a failed one must not be touched."""

    machine: Machine
    num_DLA_cores = 0  # noqa: N815

    def __init__(self, logger: Any) -> None:
        assert logger.made, "the base class was not initialised"
        self.logger = logger
        self.gpu_allocator: Any = None
        self.engine_host_code_allowed = False
        self.empty = bool(self.machine.refusals.pop("runtime", 0))
        if self.empty:
            self.say("ERROR", "CUDA initialization failure with error: 35")

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "empty", False):
            raise Misuse("the runtime is empty: this would end the process")
        object.__setattr__(self, name, value)

    def __del__(self) -> None:
        if self.empty:
            self.machine.crashes += 1

    def deserialize_cuda_engine(self, plan: Any) -> Engine | None:
        if self.empty:
            raise Misuse("the runtime is empty: this would end the process")
        described = self._read(bytes(plan))
        if described is None:
            return None
        address = self.take(described.get("weights", 4096))
        if not address:
            return self.say("ERROR", "Error Code 2: OutOfMemory (Requested size was 4096 bytes.)")
        engine = Engine(self, described)
        weakref.finalize(engine, self.give, address)
        return engine

    def _read(self, data: bytes) -> dict[str, Any] | None:
        version = tuple(data[24:28])
        try:
            described = json.loads(data[28:])
        except ValueError:
            return self.say(
                "ERROR",
                "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion safeVersionRead failed.)",
            )
        if version != VERSION and not described.get("host_code"):
            expected, found = (".".join(map(str, each)) for each in (VERSION, version))
            return self.say(
                "ERROR",
                f"Error Code 6: API Usage Error (The engine plan file is not compatible with this version of TensorRT, expecting library version {expected} got {found})",
            )
        if described.get("host_code") and not self.engine_host_code_allowed:
            return self.say(
                "ERROR",
                "Error Code 3: API Usage Error (engine contains host code, which is not allowed)",
            )
        return described

    def take(self, size: int) -> int:
        if self.gpu_allocator is None:
            return self.machine.allocate(size)
        return self.gpu_allocator.allocate_async(size, 256, 0, 0) or 0

    def give(self, address: int) -> None:
        if self.gpu_allocator is None:
            self.machine.free(address)
        else:
            assert self.gpu_allocator.deallocate_async(address, 0)

    def say(self, severity: str, text: str) -> None:
        self.logger.log(ILogger.Severity[severity], text)


def tensorrt(machine: Machine, name: str = "tensorrt") -> ModuleType:
    """Return the module."""
    module = ModuleType(name)
    module.__version__ = ".".join(map(str, VERSION))
    for each in (
        DataType,
        TensorIOMode,
        ExecutionContextAllocationStrategy,
        Dims,
        ILogger,
        IGpuAllocator,
        IOutputAllocator,
    ):
        setattr(module, each.__name__, each)
    module.Runtime = type("Runtime", (Runtime,), {"machine": machine})
    module.registered = []
    if name == "tensorrt":
        module.init_libnvinfer_plugins = lambda _logger, namespace: module.registered.append(
            namespace
        )
    return module
