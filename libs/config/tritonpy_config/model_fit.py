"""Comparison of configured tensors with those of the model's own file, for backends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tritonpy_types import DATATYPES, shape_text
from tritonpy_types.errors import InvalidArgument

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import (
        ModelConfig,
        ModelEnsembling,
        ModelInput,
        ModelOutput,
        ModelSequenceBatching,
    )

SEPARATOR = "::"


WILDCARD = -1
MAX_SIZE = (1 << 63) - 1


def dims_text(dims: Iterable[int]) -> str:
    """Return `[1,-1,3]`, the format of Triton's error texts."""
    return f"[{','.join(map(str, dims))}]"


def element_count(dims: Iterable[int]) -> int:
    """Return the number of elements: -1 with a variable dimension, 0 without any dimension."""
    sizes = list(dims)
    if WILDCARD in sizes or not sizes:
        return WILDCARD if sizes else 0
    count = 1
    for size in sizes:
        count *= size
    return count


def trunk_counts(dims: Iterable[int]) -> list[int]:
    """Return the element counts of the runs between variable dimensions: [2,4,-1,6] gives [8,6]."""
    counts = [1]
    for size in dims:
        if size == WILDCARD:
            counts.append(1)
        else:
            counts[-1] *= size
    return counts


def needed_steps(steps: Sequence[ModelEnsembling.Step], outputs: Collection[str]) -> list[int]:
    """Return the indices of the steps that the tensors `outputs` depend on, ascending."""
    producers = {
        tensor: index for index, step in enumerate(steps) for tensor in step.output_map.values()
    }
    indices, pending = set[int](), list(outputs)
    while pending:
        index = producers.get(pending.pop())
        if index is not None and index not in indices:
            indices.add(index)
            pending += steps[index].input_map.values()
    return sorted(indices)


def qualified_name(namespace: str, name: str) -> str:
    """Return the name of a model that is unique in all namespaces.

    Without a namespace, it is `name` itself.
    """
    return f"{namespace}{SEPARATOR}{name}" if namespace else name


def namespace_of(key: str, name: str) -> str:
    """Return the namespace in which the model `name` has the qualified name `key`."""
    return "" if key == name else key.removesuffix(f"{SEPARATOR}{name}")


def called_model(step: ModelEnsembling.Step) -> str:
    """Return the engine's name for the model of an ensemble's step, after normalization."""
    return qualified_name(step.model_namespace, step.model_name)


def model_dims(field: ModelInput | ModelOutput) -> tuple[int, ...]:
    """Return the dimensions that the model sees, after reshape and without the batch dimension."""
    return tuple(field.reshape.shape if field.HasField("reshape") else field.dims)


def set_dims(field: ModelInput | ModelOutput, dims: Sequence[int], batched: bool) -> None:
    """Set the dimensions of `field` to those of a model.

    The first is the batch's if it is `batched`.
    """
    field.dims.extend(dims[1:] if batched else dims)
    if not field.dims:
        # A configuration cannot describe scalars: clients see one element. With batching, the
        # reshape to no dimensions makes it a scalar for the model.
        field.dims.append(1)
        if batched:
            field.reshape.SetInParent()


def control_inputs(config: ModelConfig) -> list[tuple[str, int]]:
    """Return name and data type of each sequence control, in Triton's order of kinds.

    The order is start, end, ready, correlation ID.
    """
    sequence = config.sequence_batching
    kinds = sequence.Control.Kind
    order = (
        kinds.CONTROL_SEQUENCE_START, kinds.CONTROL_SEQUENCE_END,
        kinds.CONTROL_SEQUENCE_READY, kinds.CONTROL_SEQUENCE_CORRID,
    )  # fmt: skip
    found = [
        (control, tensor.name) for tensor in sequence.control_input for control in tensor.control
    ]
    found.sort(key=lambda each: order.index(each[0].kind))
    return [(name, _control_type(control)) for control, name in found]


def _control_type(control: ModelSequenceBatching.Control) -> int:
    for values, datatype in (
        (control.int32_false_true, "INT32"),
        (control.fp32_false_true, "FP32"),
        (control.bool_false_true, "BOOL"),
    ):
        if values:
            return DATATYPES[datatype].number
    return control.data_type


def unable_to_load(config: ModelConfig, why: str) -> InvalidArgument:
    """Return Triton's error for a model that does not match its configuration."""
    return InvalidArgument(f"unable to load model '{config.name}', {why}")


def dims_misfit(
    config: ModelConfig, name: str, model: Sequence[int], configured: Sequence[int]
) -> InvalidArgument:
    """Return the error for the tensor `name`, whose dimensions in the model differ.

    `configured` includes the batch dimension if the model has one.
    """
    shape = shape_text(configured)
    how = (
        (
            "an initial batch dimension because max_batch_size > 0 followed by the explicit "
            f"tensor shape, making complete shape {shape}"
        )
        if config.max_batch_size > 0
        else f"shape {shape}"
    )
    return InvalidArgument(
        f"model '{config.name}', tensor '{name}': the model expects {len(model)} dimensions "
        f"(shape {shape_text(model)}) but the model "
        f"configuration specifies {len(configured)} dimensions ({how}). "
        f"{_dims_remedy(config, name, model, configured)}"
    )


def _dims_remedy(
    config: ModelConfig, name: str, model: Sequence[int], configured: Sequence[int]
) -> str:
    """Return which dimension differs, and the correct setting."""
    batched = config.max_batch_size > 0
    if len(model) != len(configured):
        where = (
            f"They have {len(model)} dimensions in the model and {len(configured)} in the "
            "configuration"
        )
    else:
        place = next(
            (i for i, (a, b) in enumerate(zip(model, configured, strict=True)) if a != b), 0
        )
        where = (
            f"Dimension {place + 1} is {model[place]} in the model and {configured[place]} in "
            "the configuration"
        )
    if batched and (not model or model[0] != -1):
        return (
            f"{where}: the model has no variable batch dimension, so write max_batch_size: "
            f"0 and dims: {_dims(model)}"
        )
    fields: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    field = next((each for each in fields if each.name == name), None)
    key = "reshape { shape: %s }" if field is not None and field.HasField("reshape") else "dims: %s"
    return f"{where}: write {key % _dims(model[1:] if batched else model)}"


def _dims(dims: Sequence[int]) -> str:
    return f"[ {', '.join(map(str, dims))} ]" if dims else "[ ]"
