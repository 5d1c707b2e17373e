"""The tensors that a configuration speaks of, each as the engine sees it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import DATATYPE_OF_NUMBER, control_inputs, model_dims
from tritonpy_backend_trt.signature import NO_DATATYPE, Shape
from tritonpy_protos.model_config_pb2 import BatchInput

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

WILDCARD = -1
# Of a model that does not batch: what each kind of batch input has for its only request, beside those that depend on the source.
_ALONE = {
    BatchInput.BATCH_ELEMENT_COUNT: (1,),
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT: (1,),
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: (2,),
    BatchInput.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: (WILDCARD,),
}


class Configured(NamedTuple):
    """One input: `role` is input, control, state or batch input; `dims` are without the batch dimension, where there is one."""

    name: str
    role: str
    datatype: str
    dims: Shape
    ragged: bool = False


def datatype_of_number(number: int) -> str:
    """Return the protocol's name of a data type of the configuration, INVALID where it has none."""
    kind = DATATYPE_OF_NUMBER.get(number)
    return NO_DATATYPE if kind is None else kind.name


def inputs_of(config: ModelConfig) -> Iterator[Configured]:
    """Yield every input that the engine gets: the requests', and what the server adds to them."""
    for field in config.input:
        datatype = datatype_of_number(field.data_type)
        yield Configured(field.name, "input", datatype, model_dims(field), field.allow_ragged_batch)
    for name, number in control_inputs(config):
        yield Configured(name, "control", datatype_of_number(number), (1,))
    for each in config.batch_input:
        dims = _batch_input_dims(config, each)
        for name in each.target_name:
            yield Configured(name, "batch input", datatype_of_number(each.data_type), dims)
    for state in config.sequence_batching.state:
        yield Configured(state.input_name, "state", datatype_of_number(state.data_type), tuple(state.dims))


def input_shapes(config: ModelConfig) -> Mapping[str, Shape]:
    """Return the largest shape of each input as far as the configuration says it: -1 is any size; the batch comes first."""
    return {each.name: _shape(config.max_batch_size, each) for each in inputs_of(config)}


def _shape(max_batch_size: int, each: Configured) -> Shape:
    if each.ragged:
        return (WILDCARD,)
    if max_batch_size == 0:
        return each.dims
    # A batch input has its own number of rows: one more than the batch, or one for each element.
    return (WILDCARD if each.role == "batch input" else max_batch_size, *each.dims)


def _batch_input_dims(config: ModelConfig, each: BatchInput) -> Shape:
    of_item = each.kind in {BatchInput.BATCH_ITEM_SHAPE, BatchInput.BATCH_ITEM_SHAPE_FLATTEN}
    source = next((field for field in config.input if field.name == each.source_input[0]), None)
    rank = (len(model_dims(source)),) if of_item and source is not None else ()
    if config.max_batch_size > 0:
        return rank if each.kind == BatchInput.BATCH_ITEM_SHAPE else ()
    if each.kind == BatchInput.BATCH_ITEM_SHAPE:
        return (1, *rank)
    return rank if of_item else _ALONE[each.kind]
