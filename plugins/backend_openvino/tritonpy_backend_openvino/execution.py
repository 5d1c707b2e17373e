"""One batch in an infer request: what goes in, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import Internal, Tensor
from tritonpy_backend_openvino.failures import failure_of
from tritonpy_backend_openvino.opened import Compiled
from tritonpy_backend_openvino.signature import ELEMENTS_OF_DATATYPES, TensorInfo, by_every_name
from tritonpy_backend_openvino.tensors import array_of, shared, texts

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Output:
    """An output that is wanted: `shape` is what is known of it before it is computed, 0 for what is not.

    `shown` is the shape in which clients see a scalar; an output that is input number `passes` under another name is not computed.
    """

    name: str
    index: int
    datatype: str
    element: Any
    shape: Shape
    shown: Shape | None
    passes: int | None


class Execution:
    """How the batches of a model run in its infer requests. Any number of them may run at once."""

    def __init__(self, config: ModelConfig, compiled: Compiled) -> None:
        self.openvino = compiled.openvino
        self.inputs = by_every_name(compiled.signature.inputs)
        self.count = len(compiled.signature.inputs)
        self.elements = {name: getattr(self.openvino.Type, each) for name, each in ELEMENTS_OF_DATATYPES.items()}
        self.stateful = compiled.stateful
        self.shapes = compiled.shapes if compiled.shapes.needed else None
        self.rows = config.max_batch_size if compiled.settings.fixed_batch else 0
        self._pads = compiled.settings.pads
        known = by_every_name(compiled.signature.outputs)
        shapes = {state.output_name: tuple(state.dims) for state in config.sequence_batching.state}
        shapes.update({field.name: tuple(field.dims) for field in config.output})
        self.outputs = [self._output(name, known[name], shape, compiled) for name, shape in shapes.items()]

    def begin(self, tensors: Sequence[Tensor], rows: int) -> Running:
        """Return a batch of `rows` that is about to run; raises Internal where a model of one batch size cannot take it."""
        if self.rows and rows != self.rows and not self._pads:
            raise Internal(
                f"expected requests with batch size '{self.rows}', got '{rows}'... this error can be avoided by setting "
                "'ENABLE_BATCH_PADDING' parameter in model configuration to 'YES' at a performance cost."
            )
        return Running(self, tensors, rows)

    def _output(self, name: str, info: TensorInfo, shown: Shape, compiled: Compiled) -> _Output:
        shape = (0,) if info.dims is None else tuple(max(dim, 0) for dim in info.dims)
        return _Output(
            name, info.index, info.datatype, self.elements[info.datatype], shape,
            shown if info.dims == () else None, compiled.passing.get(info.index),
        )  # fmt: skip


class Running:
    """One batch on its way: it holds the memory of its inputs until it is over, and that of its outputs."""

    def __init__(self, execution: Execution, tensors: Sequence[Tensor], rows: int) -> None:
        self._execution = execution
        self._tensors = {execution.inputs[tensor.name].index: tensor for tensor in tensors}
        self._rows = rows
        self._kept: list[Array] = []  # what OpenVINO reads from
        self._made: list[Any] = []

    def fill(self, request: Any) -> None:
        """Set the tensors of `request`; raises Internal with OpenVINO's text where they do not fit the model."""
        execution = self._execution
        try:
            if len(self._tensors) != execution.count:  # OpenVINO would compute with what the last batch left there
                raise Internal(f"the model has {execution.count} inputs, the batch brings {len(self._tensors)}")  # noqa: TRY301
            given = {index: self._given(tensor) for index, tensor in self._tensors.items()}
            if execution.shapes is not None:
                execution.shapes.check({index: tuple(tensor.shape) for index, tensor in given.items()})
            if execution.stateful:  # a request must not see what another one left behind
                request.reset_state()
            for index, tensor in given.items():
                request.set_input_tensor(index, tensor)
            for output in execution.outputs:
                made = None if output.passes is not None else execution.openvino.Tensor(output.element, output.shape)
                if made is not None:
                    request.set_output_tensor(output.index, made)
                self._made.append(made)
        except Exception as error:
            raise failure_of("setting tensor data", error) from error

    def outputs(self) -> dict[str, Tensor]:
        """Return what the batch gave; call it when its request is over."""
        return {
            output.name: self._passed(output) if made is None else self._computed(output, made)
            for output, made in zip(self._execution.outputs, self._made, strict=True)
        }

    def _given(self, tensor: Tensor) -> Any:
        execution = self._execution
        shape = () if execution.inputs[tensor.name].dims == () else tensor.shape
        if tensor.datatype == "BYTES":
            return texts(execution.openvino, tensor, shape)
        array = tensor.numpy().reshape(shape)
        if execution.rows > self._rows and shape[:1] == (self._rows,):
            array = _padded(array, execution.rows)
        self._kept.append(array)
        return shared(execution.openvino, array, execution.elements[tensor.datatype])

    def _computed(self, output: _Output, made: Any) -> Tensor:
        array = array_of(made, output.datatype)
        if self._execution.rows > self._rows:
            array = array[: self._rows]
        return Tensor.from_numpy(output.name, array if output.shown is None else array.reshape(output.shown))

    def _passed(self, output: _Output) -> Tensor:
        assert output.passes is not None, "only what is not computed is passed on: this is a bug"  # noqa: S101
        tensor = self._tensors[output.passes]
        return tensor.view(output.name, output.shown or tensor.shape)


def _padded(array: Array, rows: int) -> Array:
    """Return `array` with rows of zeros behind it, `rows` in all."""
    padded = np.zeros((rows, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded
