"""Rules for the implicit state of the sequence batcher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy.config.dims import WILDCARD
from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelInstanceGroup, ModelSequenceBatching


def state_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of states: their tensors, their memory and their initial states."""
    states = config.sequence_batching.state
    for index, state in enumerate(states):
        path = f"sequence_batching.state[{index}]"
        yield from _tensor_problems(state, path, states[:index])
        yield from _memory_problems(config, state, path)
        count = len(state.initial_state)
        if count > 1:
            yield ConfigProblem(
                f"{path}.initial_state",
                f"initial_state field for state input '{state.input_name}' must contain exactly one or zero element. "
                f"Found '{count}' elements.",
            )
        elif count == 1:
            yield from _initial_state_problems(state, f"{path}.initial_state[0]")


def _tensor_problems(
    state: ModelSequenceBatching.State, path: str, before: Sequence[ModelSequenceBatching.State]
) -> Iterator[ConfigProblem]:
    for field in ("input_name", "output_name"):
        name = getattr(state, field)
        if not name:
            yield ConfigProblem(path, f"a state must specify '{field}'")
        elif name in [getattr(other, field) for other in before]:
            text = f"State {field.replace('_', ' ')} '{name}' specified more than once."
            yield ConfigProblem(f"{path}.{field}", text)
    if state.data_type == DataType.TYPE_INVALID:
        yield ConfigProblem(path, f"state '{state.input_name}' must specify 'data_type'")
    if any(dim < 1 and dim != WILDCARD for dim in state.dims):
        text = f"state '{state.input_name}': a dimension is an integer >= 1, or -1 for any size"
        yield ConfigProblem(f"{path}.dims", text)


def _memory_problems(config: ModelConfig, state: ModelSequenceBatching.State, path: str) -> Iterator[ConfigProblem]:
    """Yield problems that Triton finds only when the first sequence starts.

    It then ignores the states.
    """
    if not state.use_growable_memory:
        return
    key = f"{path}.use_growable_memory"
    if not state.use_same_buffer_for_input_output:
        yield ConfigProblem(
            key,
            "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name "
            f"'{state.input_name}'.",
        )
    elif any(group.kind != ModelInstanceGroup.KIND_GPU for group in config.instance_group):
        yield ConfigProblem(
            key,
            "'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change the "
            "instance type to KIND_GPU or set 'use_growable_memory' to false for state input "
            f"'{state.input_name}'.",
        )


def _initial_state_problems(state: ModelSequenceBatching.State, path: str) -> Iterator[ConfigProblem]:
    initial, name = state.initial_state[0], state.input_name
    if initial.data_type != state.data_type:
        yield ConfigProblem(
            f"{path}.data_type",
            f"The data type used for 'initial_state' field of state '{name}' does not match the state data type.",
        )
    if not initial.name:
        text = f"Field 'name' must be set when using initial_state for state input '{name}'."
        yield ConfigProblem(path, text)
    if len(initial.dims) != len(state.dims):
        yield ConfigProblem(
            f"{path}.dims",
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input "
            f"'{name}'. {len(initial.dims)} != {len(state.dims)}",
        )
        return
    for index, (size, declared) in enumerate(zip(initial.dims, state.dims, strict=True)):
        key = f"{path}.dims[{index}]"
        if size == WILDCARD:
            yield ConfigProblem(
                key, f"'initial_state' field for state input name '{name}' contains variable dimensions."
            )
        elif declared not in (WILDCARD, size):
            yield ConfigProblem(
                key,
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description. "
                f"{size} != {declared}",
            )
