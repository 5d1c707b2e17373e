"""Conversion of a model to the batch size, shapes and data types of its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_openvino.errors import translate_errors
from tritonpy_backend_openvino.signature import (
    ELEMENTS_OF_DATATYPES,
    Signature,
    TensorInfo,
    with_aliases,
)

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Dims = tuple[int, ...]


def input_shapes(
    config: ModelConfig, signature: Signature, fixed_batch: bool, reshape_inputs: bool
) -> dict[int, Dims]:
    """Return the new shapes of inputs by index, without those that keep their shape.

    With batching, the first dimension is dynamic, or the largest batch with `fixed_batch`. With
    `reshape_inputs`, the other dimensions come from `config`. Pure.
    """
    given: Mapping[str, Dims] = {}
    if reshape_inputs:
        fields = config.input
        given = {
            each.name: tuple(each.reshape.shape if each.HasField("reshape") else each.dims)
            for each in fields
        }
    wanted = {}
    rows = config.max_batch_size
    known = with_aliases(signature.inputs)
    by_index = {known[name].index: dims for name, dims in given.items()}
    ragged = {known[each.name].index for each in config.input if each.allow_ragged_batch}
    for info in signature.inputs.values():
        dims = _shape(
            info, by_index.get(info.index), rows if info.index not in ragged else 0, fixed_batch
        )
        if dims is not None and dims != info.dims:
            wanted[info.index] = dims
    return wanted


def _shape(info: TensorInfo, given: Dims | None, rows: int, fixed_batch: bool) -> Dims | None:
    """Return the shape for one input, or None if it is unknown."""
    if not rows:
        return given if given is not None else info.dims
    first = rows if fixed_batch else -1
    if given is not None:
        return (first, *given)
    return (first, *info.dims[1:]) if info.dims else info.dims


def reshape(openvino: Any, model: Any, shapes: Mapping[int, Dims]) -> None:
    """Reshape the inputs of `model`.

    Raises `Internal` if its operators do not support the shapes.
    """
    if shapes:
        with translate_errors("reshaping the inputs"):
            model.reshape(
                {index: openvino.PartialShape(list(dims)) for index, dims in shapes.items()}
            )


def convert(openvino: Any, model: Any, config: ModelConfig, signature: Signature) -> Any:
    """Return `model` with the configured input and output data types.

    Returns the same object if no data type changes.
    """
    sequence = config.sequence_batching
    inputs = [
        *[(each.name, each.data_type) for each in config.input],
        *[(each.input_name, each.data_type) for each in sequence.state],
    ]
    outputs = [
        *[(each.name, each.data_type) for each in config.output],
        *[(each.output_name, each.data_type) for each in sequence.state],
    ]
    wanted_inputs, wanted_outputs = (
        _conversions(inputs, signature.inputs),
        _conversions(outputs, signature.outputs),
    )
    if not (wanted_inputs or wanted_outputs):
        return model
    with translate_errors("setting precision"):
        steps = openvino.preprocess.PrePostProcessor(model)
        for index, element in wanted_inputs.items():
            steps.input(index).tensor().set_element_type(getattr(openvino.Type, element))
        for index, element in wanted_outputs.items():
            steps.output(index).tensor().set_element_type(getattr(openvino.Type, element))
        return steps.build()


def _conversions(
    configured: Iterable[tuple[str, int]], infos: Mapping[str, TensorInfo]
) -> dict[int, str]:
    known = with_aliases(infos)
    return {
        known[name].index: ELEMENTS_OF_DATATYPES[datatype]
        for name, number in configured
        if (datatype := DATATYPE_OF_NUMBER[number].name) != known[name].datatype
    }
