"""The implicit state of the sequence batcher."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.dims import WILDCARD
from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelSequenceBatching


def state_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the initial states that do not fit the state they start."""
    seen: set[str] = set()
    for index, state in enumerate(config.sequence_batching.state):
        path = f"sequence_batching.state[{index}]"
        count = len(state.initial_state)
        if count > 1:
            yield ConfigProblem(
                f"{path}.initial_state",
                f"initial_state field for state input '{state.input_name}' must contain exactly one or zero element. "
                f"Found '{count}' elements.",
            )
        elif count == 1:
            if state.input_name in seen:
                text = f"State input name '{state.input_name}' specified more than once."
                yield ConfigProblem(f"{path}.input_name", text)
            seen.add(state.input_name)
            yield from _initial_state_problems(state, f"{path}.initial_state[0]")


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
