"""Pure parsing of session settings from a model configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
from tritonpy.config import parameter_bool, parameter_int, parameter_threads

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# optimization.graph.level -> attribute of onnxruntime.GraphOptimizationLevel; any other level
# enables all optimizations.
_GRAPH_LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
# Parameters with these prefixes are passed to ONNX Runtime unchanged. Triton supports one of each:
# session.use_device_allocator_for_initializers and memory.enable_memory_arena_shrinkage.
_SESSION, _RUN = "session.", "memory."
SESSION_PATHS = (
    "session.model_external_initializers_file_folder_path",
    "session.optimized_model_external_initializers_file_name",
    "session.collect_node_memory_stats_to_file",
    "session.resource_cuda_partitioning_settings",
)
"""Session parameters whose values are paths on the server."""
# Spinning threads take CPU time from the server's event loop. On two cores, they double the CPU
# time per batch. A small network loses a fifth of its throughput, and a large one gains nothing.
_DEFAULT_ENTRIES = {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Session settings of one model; None and 0 keep ONNX Runtime's default.

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


def model_settings(config: ModelConfig, parameters: Mapping[str, str]) -> ModelSettings:
    """Return the settings in `config` and `parameters`.

    Raises `InvalidArgument` for invalid values.
    """
    return ModelSettings(
        graph_level=_GRAPH_LEVELS.get(config.optimization.graph.level, "ORT_ENABLE_ALL"),
        parallel=_execution_mode(parameters) == 1,
        intra_op_threads=_threads(parameters, "intra_op_thread_count"),
        inter_op_threads=_threads(parameters, "inter_op_thread_count"),
        memory_arena=_bool_or_none(parameters, "enable_mem_arena"),
        memory_pattern=_bool_or_none(parameters, "enable_mem_pattern"),
        session_entries={**_DEFAULT_ENTRIES, **_entries(parameters, _SESSION)},
        run_entries=_entries(parameters, _RUN),
        op_libraries=tuple(config.model_operations.op_library_filename),
    )


def _execution_mode(parameters: Mapping[str, str]) -> int:
    mode = parameter_int("execution_mode", parameters.get("execution_mode", "0"))
    if mode not in {0, 1}:
        raise InvalidArgument(
            "Invalid configuration value provided. Expected values for  execution_mode are 0 or "
            f"1 but got {mode} ."
        )
    return mode


def _threads(parameters: Mapping[str, str], key: str) -> int:
    return parameter_threads(key, parameters.get(key, "0"))


def _bool_or_none(parameters: Mapping[str, str], key: str) -> bool | None:
    return parameter_bool(key, parameters[key]) if key in parameters else None


def _entries(parameters: Mapping[str, str], beginning: str) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key.startswith(beginning)}
