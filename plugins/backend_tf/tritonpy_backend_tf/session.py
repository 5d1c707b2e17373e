"""TensorFlow sessions for a model on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tritonpy import MemoryUsage
from tritonpy_backend_tf.options import TensorFlowOptions
from tritonpy_backend_tf.runtime import free_graph, import_tensorflow
from tritonpy_backend_tf.settings import ModelSettings
from tritonpy_config.processors import default_threads

if TYPE_CHECKING:
    from tritonpy_backend_tf.model_source import ModelSource

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class SessionDevice:
    """Device of a session.

    `kind` is CPU, GPU, or MODEL, which uses the devices that the model names. `cores` are the cores
    that its threads are pinned to, if any.
    """

    kind: str
    id: int = 0
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A `tf.compat.v1.Session` with a loaded model, and the memory of its weights."""

    session: Any
    memory: tuple[MemoryUsage, ...]

    def make_callable(
        self, feeds: Sequence[str], fetches: Sequence[str]
    ) -> Callable[..., Sequence[Any]]:
        """Return a function from arrays for the tensors `feeds` to a list of arrays for `fetches`.

        Raises TensorFlow's exceptions.
        """
        from tensorflow.core.protobuf.config_pb2 import CallableOptions

        # `Session.run` would look up names and check shapes in Python on each call, which takes 0.1
        # ms.
        callable_of: Any = self.session._make_callable_from_options
        return callable_of(CallableOptions(feed=feeds, fetch=fetches))  # type: ignore[no-any-return]

    def has_device(self, device: str) -> bool:
        """Return whether TensorFlow has this device.

        Without it, a session silently runs on the CPU.
        """
        return any(
            each.name.lower().endswith(f"device:{device.strip('/')}")
            for each in self.session.list_devices()
        )

    def close(self) -> None:
        """Free graph and weights."""
        self.session.close()
        free_graph(self.session.graph)


def open_session(
    source: ModelSource,
    settings: ModelSettings,
    options: TensorFlowOptions,
    device: SessionDevice,
    rewriter: str | None = None,
    init_ops: Sequence[str] = (),
) -> OpenSession:
    """Open the model in a new session and run the operations `init_ops`.

    Raises TensorFlow's exceptions.
    """
    tensorflow = import_tensorflow()
    for library in settings.op_libraries:
        tensorflow.load_op_library(library)
    graph = tensorflow.Graph()
    with graph.as_default():
        config = session_config(tensorflow, settings, options, device, rewriter)
        session = tensorflow.compat.v1.Session(graph=graph, config=config)
        try:
            source.restore(tensorflow, session, tensorflow_name(device, settings))
            session.run([graph.get_operation_by_name(name) for name in init_ops])
            return OpenSession(session, _memory(graph.get_operations()))
        except BaseException:
            session.close()
            free_graph(graph)
            raise


def session_config(
    tensorflow: Any,
    settings: ModelSettings,
    options: TensorFlowOptions,
    device: SessionDevice,
    rewriter: str | None = None,
) -> Any:
    """Return TensorFlow's session configuration."""
    threads = len(device.cores)
    between = settings.inter_op_threads or threads
    config = tensorflow.compat.v1.ConfigProto(
        intra_op_parallelism_threads=settings.intra_op_threads or threads or default_threads(),
        inter_op_parallelism_threads=-1 if between == 1 else between,  # -1: the calling thread
        use_per_session_threads=settings.own_threads or threads > 1,
        allow_soft_placement=options.allow_soft_placement,
    )
    graph = config.graph_options
    graph.optimizer_options.global_jit_level = getattr(graph.optimizer_options, settings.jit_level)
    if rewriter is not None:
        setattr(graph.rewrite_options, rewriter, graph.rewrite_options.ON)
    if device.kind == "CPU":
        config.device_count["GPU"] = 0
        return config
    gpu = config.gpu_options
    gpu.allow_growth = options.gpu_memory_fraction == 0
    gpu.per_process_gpu_memory_fraction = options.gpu_memory_fraction
    if settings.memory_limit is not None:
        gpu.visible_device_list = str(device.id)
        gpu.experimental.virtual_devices.add(memory_limit_mb=[settings.memory_limit / _MIB])
    return config


def tensorflow_name(device: SessionDevice, settings: ModelSettings) -> str:
    """Return TensorFlow's name of the device, or "" if the model names its devices."""
    if device.kind == "MODEL":
        return ""
    # With a memory limit the session sees only that GPU.
    number = device.id if device.kind == "GPU" and settings.memory_limit is None else 0
    return f"/{device.kind.lower()}:{number}"


def _memory(operations: Iterable[Any]) -> tuple[MemoryUsage, ...]:
    sizes: dict[tuple[str, int], int] = {}
    for operation in operations:
        size = _weight_bytes(operation)
        if size:
            place = _parse_device(operation.device)
            sizes[place] = sizes.get(place, 0) + size
    return tuple(
        MemoryUsage("GPU" if kind == "GPU" else "CPU", number, size)
        for (kind, number), size in sizes.items()
    )


def _weight_bytes(operation: Any) -> int:
    """Return the size in bytes of a variable or constant; 0 for others and for unknown sizes."""
    if operation.type == "VarHandleOp":
        dtype, shape = operation.get_attr("dtype"), operation.get_attr("shape")
        sizes = [dim.size for dim in shape.dim]
        elements = 1 if not shape.unknown_rank and -1 not in sizes else 0
        for size in sizes:
            elements *= size
        return elements * int(dtype.size)
    if operation.type in {"Const", "VariableV2"}:
        tensor = operation.outputs[0]
        return int(tensor.shape.num_elements() or 0) * int(tensor.dtype.size)
    return 0


def _parse_device(device: str) -> tuple[str, int]:
    """Return kind and index of a TensorFlow device such as `/device:GPU:1`; the CPU for ""."""
    *_, kind, number = ("", "", *device.upper().split(":"))
    return ("GPU", int(number)) if kind.endswith("GPU") and number.isdecimal() else ("CPU", 0)
