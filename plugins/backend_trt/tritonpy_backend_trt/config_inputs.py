"""Pure enumeration of the configured inputs, with shapes as in the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy.config import DATATYPE_OF_NUMBER, control_inputs, model_dims
from tritonpy_backend_trt.signature import NO_DATATYPE, Shape
from tritonpy_protos.model_config_pb2 import BatchInput

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

WILDCARD = -1
# Shapes of batch inputs for a single request of a model without batching, for kinds that do not
# depend on the source.
_UNBATCHED_DIMS = {
    BatchInput.BATCH_ELEMENT_COUNT: (1,),
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT: (1,),
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: (2,),
    BatchInput.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: (WILDCARD,),
}


class ConfigInput(NamedTuple):
    """One input of the engine.

    `role` is input, control, state or batch input. `dims` omit the batch dimension.
    """

    name: str
    role: str
    datatype: str
    dims: Shape
    ragged: bool = False


def datatype_of_number(number: int) -> str:
    """Return the protocol's datatype for a number in the configuration, or INVALID."""
    kind = DATATYPE_OF_NUMBER.get(number)
    return NO_DATATYPE if kind is None else kind.name


def config_inputs(config: ModelConfig) -> Iterator[ConfigInput]:
    """Yield all inputs of the engine: those of requests and those that the server adds."""
    for field in config.input:
        datatype = datatype_of_number(field.data_type)
        yield ConfigInput(
            field.name, "input", datatype, model_dims(field), field.allow_ragged_batch
        )
    for name, number in control_inputs(config):
        yield ConfigInput(name, "control", datatype_of_number(number), (1,))
    for each in config.batch_input:
        dims = _batch_input_dims(config, each)
        for name in each.target_name:
            yield ConfigInput(name, "batch input", datatype_of_number(each.data_type), dims)
    for state in config.sequence_batching.state:
        yield ConfigInput(
            state.input_name, "state", datatype_of_number(state.data_type), tuple(state.dims)
        )


def input_shapes(config: ModelConfig) -> Mapping[str, Shape]:
    """Return the largest configured shape of each input, batch first; -1 means any size."""
    return {each.name: _shape(config.max_batch_size, each) for each in config_inputs(config)}


def _shape(max_batch_size: int, each: ConfigInput) -> Shape:
    if each.ragged:
        return (WILDCARD,)
    if max_batch_size == 0:
        return each.dims
    # A batch input has its own number of rows: one more than the batch, or one per element.
    return (WILDCARD if each.role == "batch input" else max_batch_size, *each.dims)


def _batch_input_dims(config: ModelConfig, each: BatchInput) -> Shape:
    of_item = each.kind in {BatchInput.BATCH_ITEM_SHAPE, BatchInput.BATCH_ITEM_SHAPE_FLATTEN}
    source = next((field for field in config.input if field.name == each.source_input[0]), None)
    rank = (len(model_dims(source)),) if of_item and source is not None else ()
    if config.max_batch_size > 0:
        return rank if each.kind == BatchInput.BATCH_ITEM_SHAPE else ()
    if each.kind == BatchInput.BATCH_ITEM_SHAPE:
        return (1, *rank)
    return rank if of_item else _UNBATCHED_DIMS[each.kind]
