"""Rules for the sequence batcher."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.problem import ConfigProblem
from tritonpy.config.validate.dynamic import preferred_size_problems
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelSequenceBatching

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
            yield ConfigProblem(path, f"sequence batching control tensor must have a name for {name}")
        elif tensor.name in seen:
            yield ConfigProblem(
                path,
                f"sequence batching control tensor '{tensor.name}' is specified for multiple control kinds for {name}",
            )
        seen.add(tensor.name)


def _control_problems(batching: ModelSequenceBatching, name: str) -> Iterator[ConfigProblem]:
    seen: set[int] = set()
    for index, tensor in enumerate(batching.control_input):
        for number, control in enumerate(tensor.control):
            path = f"sequence_batching.control_input[{index}].control[{number}]"
            kind = _Control.Kind.Name(control.kind)
            if control.kind in seen:
                yield ConfigProblem(f"{path}.kind", f"sequence batching specifies multiple {kind} tensors for {name}")
            seen.add(control.kind)
            if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
                yield from _id_problems(control, path, kind, name)
            else:
                yield from _flag_problems(control, path, kind, name)


def _flag_problems(control: ModelSequenceBatching.Control, path: str, kind: str, name: str) -> Iterator[ConfigProblem]:
    given = [field for field in _VALUES if getattr(control, field)]
    if not given:
        yield ConfigProblem(
            path,
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            f"for {kind} for {name}",
        )
    elif len(given) > 1:
        yield ConfigProblem(
            path,
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
            f"'bool_false_true' for {kind} for {name}",
        )
    elif len(getattr(control, given[0])) != 2:
        yield ConfigProblem(
            f"{path}.{given[0]}",
            f"sequence batching control '{given[0]}' must have exactly 2 entries for {kind} for {name}",
        )


def _id_problems(control: ModelSequenceBatching.Control, path: str, kind: str, name: str) -> Iterator[ConfigProblem]:
    if any(getattr(control, field) for field in _VALUES):
        yield ConfigProblem(
            path,
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            f"for {kind} for {name}",
        )
    if control.data_type not in _ID_TYPES:
        yield ConfigProblem(
            f"{path}.data_type",
            f"unexpected data type for control {kind} for {name}. Allowed data types are TYPE_UINT64, TYPE_INT64, "
            "TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
        )
