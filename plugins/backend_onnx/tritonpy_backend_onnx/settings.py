"""The session settings that a model configuration asks for. Pure: ONNX Runtime is not needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, parameter_bool, parameter_int, parameter_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# optimization.graph.level -> attribute of onnxruntime.GraphOptimizationLevel; any other level means everything.
_GRAPH_LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
# Parameters of these beginnings are handed on to ONNX Runtime as they are; Triton knows one of each:
# session.use_device_allocator_for_initializers and memory.enable_memory_arena_shrinkage.
_SESSION, _RUN = "session.", "memory."
SESSION_PATHS = (
    "session.model_external_initializers_file_folder_path",
    "session.optimized_model_external_initializers_file_name",
    "session.collect_node_memory_stats_to_file",
    "session.resource_cuda_partitioning_settings",
)
"""Those of them that are paths of the server's file system."""
# Threads that wait by spinning take the core and the time of the server's event loop: on two cores they cost twice the CPU per
# batch and a fifth of the throughput of a small network, and bring nothing to a large one.
_DEFAULT_ENTRIES = {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of one model; None and 0 leave ONNX Runtime's default.

    `session_entries` and `run_entries` are ONNX Runtime's own configuration entries.
    """

    graph_level: str
    parallel: bool
    intra_op_threads: int
    inter_op_threads: int
    memory_arena: bool | None
    memory_pattern: bool | None
    session_entries: Mapping[str, str]
    run_entries: Mapping[str, str]
    op_libraries: tuple[str, ...]


def session_settings(config: ModelConfig, parameters: Mapping[str, str]) -> SessionSettings:
    """Read the settings; raises InvalidArgument for a value that is none."""
    return SessionSettings(
        graph_level=_GRAPH_LEVELS.get(config.optimization.graph.level, "ORT_ENABLE_ALL"),
        parallel=_execution_mode(parameters) == 1,
        intra_op_threads=_threads(parameters, "intra_op_thread_count"),
        inter_op_threads=_threads(parameters, "inter_op_thread_count"),
        memory_arena=_switch(parameters, "enable_mem_arena"),
        memory_pattern=_switch(parameters, "enable_mem_pattern"),
        session_entries={**_DEFAULT_ENTRIES, **_entries(parameters, _SESSION)},
        run_entries=_entries(parameters, _RUN),
        op_libraries=tuple(config.model_operations.op_library_filename),
    )


def _execution_mode(parameters: Mapping[str, str]) -> int:
    mode = parameter_int("execution_mode", parameters.get("execution_mode", "0"))
    if mode not in {0, 1}:
        raise InvalidArgument(
            f"Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got {mode} ."
        )
    return mode


def _threads(parameters: Mapping[str, str], key: str) -> int:
    return parameter_threads(key, parameters.get(key, "0"))


def _switch(parameters: Mapping[str, str], key: str) -> bool | None:
    return parameter_bool(key, parameters[key]) if key in parameters else None


def _entries(parameters: Mapping[str, str], beginning: str) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key.startswith(beginning)}
