"""Rules for the sequence batcher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy_config.model_fit import WILDCARD
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.validate.dynamic import preferred_size_problems
from tritonpy_protos.model_config_pb2 import (
    DataType,
    ModelConfig,
    ModelInstanceGroup,
    ModelSequenceBatching,
)

_Control = ModelSequenceBatching.Control
_ID_TYPES = (
    DataType.TYPE_UINT64,
    DataType.TYPE_INT64,
    DataType.TYPE_UINT32,
    DataType.TYPE_INT32,
    DataType.TYPE_STRING,
)
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")


def sequence_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of `sequence_batching`, except those of its implicit state."""
    if not config.HasField("sequence_batching"):
        return
    batching, name = config.sequence_batching, config.name
    yield from _name_problems(batching, name)
    yield from _control_problems(batching, name)
    if batching.HasField("oldest"):
        yield from preferred_size_problems(
            batching.oldest.preferred_batch_size,
            config,
            path="sequence_batching.oldest.preferred_batch_size",
            kind="sequence batching preferred batch size",
        )
    if batching.HasField("direct") and not 0.0 <= batching.direct.minimum_slot_utilization <= 1.0:
        yield ConfigProblem(
            "sequence_batching.direct.minimum_slot_utilization",
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {name}",
        )


def _name_problems(batching: ModelSequenceBatching, name: str) -> Iterator[ConfigProblem]:
    seen: set[str] = set()
    for index, tensor in enumerate(batching.control_input):
        path = f"sequence_batching.control_input[{index}].name"
        if not tensor.name:
            yield ConfigProblem(
                path, f"sequence batching control tensor must have a name for {name}"
            )
        elif tensor.name in seen:
            yield ConfigProblem(
                path,
                (
                    f"sequence batching control tensor '{tensor.name}' is specified for multiple "
                    f"control kinds for {name}"
                ),
            )
        seen.add(tensor.name)


def _control_problems(batching: ModelSequenceBatching, name: str) -> Iterator[ConfigProblem]:
    seen: set[int] = set()
    for index, tensor in enumerate(batching.control_input):
        for number, control in enumerate(tensor.control):
            path = f"sequence_batching.control_input[{index}].control[{number}]"
            kind = _Control.Kind.Name(control.kind)
            if control.kind in seen:
                yield ConfigProblem(
                    f"{path}.kind",
                    f"sequence batching specifies multiple {kind} tensors for {name}",
                )
            seen.add(control.kind)
            if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
                yield from _id_problems(control, path, kind, name)
            else:
                yield from _flag_problems(control, path, kind, name)


def _flag_problems(
    control: ModelSequenceBatching.Control, path: str, kind: str, name: str
) -> Iterator[ConfigProblem]:
    given = [field for field in _VALUES if getattr(control, field)]
    if not given:
        yield ConfigProblem(
            path,
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            "'bool_false_true' "
            f"for {kind} for {name}",
        )
    elif len(given) > 1:
        yield ConfigProblem(
            path,
            "sequence batching specifies more than one from 'int32_false_true', "
            "'fp32_false_true' and "
            f"'bool_false_true' for {kind} for {name}",
        )
    elif len(getattr(control, given[0])) != 2:
        yield ConfigProblem(
            f"{path}.{given[0]}",
            (
                f"sequence batching control '{given[0]}' must have exactly 2 entries for {kind} "
                f"for {name}"
            ),
        )


def _id_problems(
    control: ModelSequenceBatching.Control, path: str, kind: str, name: str
) -> Iterator[ConfigProblem]:
    if any(getattr(control, field) for field in _VALUES):
        yield ConfigProblem(
            path,
            "sequence batching must not specify either 'int32_false_true', "
            "'fp32_false_true' or 'bool_false_true' "
            f"for {kind} for {name}",
        )
    if control.data_type not in _ID_TYPES:
        yield ConfigProblem(
            f"{path}.data_type",
            f"unexpected data type for control {kind} for {name}. Allowed data types are "
            "TYPE_UINT64, TYPE_INT64, "
            "TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
        )


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
                f"initial_state field for state input '{state.input_name}' must contain exactly "
                "one or zero element. "
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


def _memory_problems(
    config: ModelConfig, state: ModelSequenceBatching.State, path: str
) -> Iterator[ConfigProblem]:
    """Yield problems that Triton finds only when the first sequence starts.

    It then ignores the states.
    """
    if not state.use_growable_memory:
        return
    key = f"{path}.use_growable_memory"
    if not state.use_same_buffer_for_input_output:
        yield ConfigProblem(
            key,
            "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for "
            "state input name "
            f"'{state.input_name}'.",
        )
    elif any(group.kind != ModelInstanceGroup.KIND_GPU for group in config.instance_group):
        yield ConfigProblem(
            key,
            "'use_growable_memory' can only work with KIND_GPU model instances right now. "
            "Please either change the "
            "instance type to KIND_GPU or set 'use_growable_memory' to false for state input "
            f"'{state.input_name}'.",
        )


def _initial_state_problems(
    state: ModelSequenceBatching.State, path: str
) -> Iterator[ConfigProblem]:
    initial, name = state.initial_state[0], state.input_name
    if initial.data_type != state.data_type:
        yield ConfigProblem(
            f"{path}.data_type",
            (
                f"The data type used for 'initial_state' field of state '{name}' does not match "
                "the state data type."
            ),
        )
    if not initial.name:
        text = f"Field 'name' must be set when using initial_state for state input '{name}'."
        yield ConfigProblem(path, text)
    if len(initial.dims) != len(state.dims):
        yield ConfigProblem(
            f"{path}.dims",
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' "
            "dimensions for state input "
            f"'{name}'. {len(initial.dims)} != {len(state.dims)}",
        )
        return
    for index, (size, declared) in enumerate(zip(initial.dims, state.dims, strict=True)):
        key = f"{path}.dims[{index}]"
        if size == WILDCARD:
            yield ConfigProblem(
                key,
                (
                    f"'initial_state' field for state input name '{name}' contains variable "
                    "dimensions."
                ),
            )
        elif declared not in (WILDCARD, size):
            yield ConfigProblem(
                key,
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim "
                "description. "
                f"{size} != {declared}",
            )
