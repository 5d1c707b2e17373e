"""Makes a model take and give what its configuration says: batches, shapes, data types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import DATATYPE_OF_NUMBER
from tritonpy_backend_openvino.failures import told_as
from tritonpy_backend_openvino.signature import ELEMENTS_OF_DATATYPES, Signature, TensorInfo, by_every_name

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Dims = tuple[int, ...]


def input_shapes(config: ModelConfig, signature: Signature, fixed_batch: bool, reshapes: bool) -> dict[int, Dims]:
    """Return the shapes that inputs must get, by their index; those that stay as they are are left out.

    With batching the first dimension is open, or with `fixed_batch` the largest batch. With `reshapes` the others are the configured ones. Pure.
    """
    given: Mapping[str, Dims] = {}
    if reshapes:
        fields = config.input
        given = {each.name: tuple(each.reshape.shape if each.HasField("reshape") else each.dims) for each in fields}
    wanted = {}
    rows = config.max_batch_size
    known = by_every_name(signature.inputs)
    by_index = {known[name].index: dims for name, dims in given.items()}
    ragged = {known[each.name].index for each in config.input if each.allow_ragged_batch}
    for info in signature.inputs.values():
        dims = _shape(info, by_index.get(info.index), rows if info.index not in ragged else 0, fixed_batch)
        if dims is not None and dims != info.dims:
            wanted[info.index] = dims
    return wanted


def _shape(info: TensorInfo, given: Dims | None, rows: int, fixed_batch: bool) -> Dims | None:
    """Return the shape for one input, None where nothing is known of it."""
    if not rows:
        return given if given is not None else info.dims
    first = rows if fixed_batch else -1
    if given is not None:
        return (first, *given)
    return (first, *info.dims[1:]) if info.dims else info.dims


def reshape(openvino: Any, model: Any, shapes: Mapping[int, Dims]) -> None:
    """Give the inputs of `model` new shapes; raises Internal where its operators do not allow them."""
    if shapes:
        with told_as("reshaping the inputs"):
            model.reshape({index: openvino.PartialShape(list(dims)) for index, dims in shapes.items()})


def convert(openvino: Any, model: Any, config: ModelConfig, signature: Signature) -> Any:
    """Return `model` with inputs and outputs of the configured data types; it is the same one where they are those already."""
    sequence = config.sequence_batching
    inputs = [
        *[(each.name, each.data_type) for each in config.input],
        *[(each.input_name, each.data_type) for each in sequence.state],
    ]
    outputs = [
        *[(each.name, each.data_type) for each in config.output],
        *[(each.output_name, each.data_type) for each in sequence.state],
    ]
    wanted_inputs, wanted_outputs = _conversions(inputs, signature.inputs), _conversions(outputs, signature.outputs)
    if not (wanted_inputs or wanted_outputs):
        return model
    with told_as("setting precision"):
        steps = openvino.preprocess.PrePostProcessor(model)
        for index, element in wanted_inputs.items():
            steps.input(index).tensor().set_element_type(getattr(openvino.Type, element))
        for index, element in wanted_outputs.items():
            steps.output(index).tensor().set_element_type(getattr(openvino.Type, element))
        return steps.build()


def _conversions(configured: Iterable[tuple[str, int]], infos: Mapping[str, TensorInfo]) -> dict[int, str]:
    known = by_every_name(infos)
    return {
        known[name].index: ELEMENTS_OF_DATATYPES[datatype]
        for name, number in configured
        if (datatype := DATATYPE_OF_NUMBER[number].name) != known[name].datatype
    }
