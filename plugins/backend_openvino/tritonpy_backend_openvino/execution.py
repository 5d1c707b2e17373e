"""Execution of one batch in an infer request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import Internal, Tensor
from tritonpy_backend_openvino.errors import to_triton_error
from tritonpy_backend_openvino.shared_model import CompiledModel
from tritonpy_backend_openvino.signature import ELEMENTS_OF_DATATYPES, TensorInfo, with_aliases
from tritonpy_backend_openvino.tensors import string_tensor, to_array, to_openvino

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Output:
    """An output to return.

    `shape` is its shape as far as it is known before execution, with 0 for unknown dimensions.
    `client_shape` is the shape that clients see for a scalar. An output that only renames an input
    is not computed; `source_input` is the index of that input.
    """

    name: str
    index: int
    datatype: str
    element: Any
    shape: Shape
    client_shape: Shape | None
    source_input: int | None


class Execution:
    """Runs the batches of a model in infer requests; any number of batches may run concurrently."""

    def __init__(self, config: ModelConfig, compiled: CompiledModel) -> None:
        self.openvino = compiled.openvino
        self.inputs = with_aliases(compiled.signature.inputs)
        self.count = len(compiled.signature.inputs)
        self.elements = {
            name: getattr(self.openvino.Type, each) for name, each in ELEMENTS_OF_DATATYPES.items()
        }
        self.stateful = compiled.stateful
        self.shapes = compiled.shapes if compiled.shapes.is_needed else None
        self.rows = config.max_batch_size if compiled.settings.fixed_batch else 0
        self._pads = compiled.settings.pad_batches
        known = with_aliases(compiled.signature.outputs)
        shapes = {state.output_name: tuple(state.dims) for state in config.sequence_batching.state}
        shapes.update({field.name: tuple(field.dims) for field in config.output})
        self.outputs = [
            self._output(name, known[name], shape, compiled) for name, shape in shapes.items()
        ]

    def prepare(self, tensors: Sequence[Tensor], rows: int) -> RunningBatch:
        """Return a batch of `rows` that is ready to run.

        Raises `Internal` if the model has a fixed batch size that the batch does not have.
        """
        if self.rows and rows != self.rows and not self._pads:
            raise Internal(
                f"expected requests with batch size '{self.rows}', got '{rows}'... "
                "this error can be avoided by setting "
                "'ENABLE_BATCH_PADDING' parameter in model configuration to 'YES' at a "
                "performance cost."
            )
        return RunningBatch(self, tensors, rows)

    def _output(
        self, name: str, info: TensorInfo, client_shape: Shape, compiled: CompiledModel
    ) -> _Output:
        shape = (0,) if info.dims is None else tuple(max(dim, 0) for dim in info.dims)
        return _Output(
            name, info.index, info.datatype, self.elements[info.datatype], shape,
            client_shape if info.dims == () else None, compiled.aliases.get(info.index),
        )  # fmt: skip


class RunningBatch:
    """One batch in execution; it keeps the memory of its inputs and outputs alive."""

    def __init__(self, execution: Execution, tensors: Sequence[Tensor], rows: int) -> None:
        self._execution = execution
        self._tensors = {execution.inputs[tensor.name].index: tensor for tensor in tensors}
        self._rows = rows
        self._kept: list[Array] = []  # memory that OpenVINO reads from
        self._output_tensors: list[Any] = []

    def fill(self, request: Any) -> None:
        """Set the tensors of `request`.

        Raises `Internal` with OpenVINO's text if they do not fit the model.
        """
        execution = self._execution
        try:
            # else OpenVINO would compute with tensors left from the last batch
            if len(self._tensors) != execution.count:
                raise Internal(  # noqa: TRY301
                    f"the model has {execution.count} inputs, but the batch has "
                    f"{len(self._tensors)}"
                )
            given = {index: self._input_tensor(tensor) for index, tensor in self._tensors.items()}
            if execution.shapes is not None:
                execution.shapes.check(
                    {index: tuple(tensor.shape) for index, tensor in given.items()}
                )
            if execution.stateful:  # a request must not see state that another one left behind
                request.reset_state()
            for index, tensor in given.items():
                request.set_input_tensor(index, tensor)
            for output in execution.outputs:
                made = (
                    None
                    if output.source_input is not None
                    else execution.openvino.Tensor(output.element, output.shape)
                )
                if made is not None:
                    request.set_output_tensor(output.index, made)
                self._output_tensors.append(made)
        except Exception as error:
            raise to_triton_error("setting tensor data", error) from error

    def outputs(self) -> dict[str, Tensor]:
        """Return the outputs of the batch; call it when its request is complete."""
        return {
            output.name: self._read_alias(output)
            if made is None
            else self._read_output(output, made)
            for output, made in zip(self._execution.outputs, self._output_tensors, strict=True)
        }

    def _input_tensor(self, tensor: Tensor) -> Any:
        execution = self._execution
        shape = () if execution.inputs[tensor.name].dims == () else tensor.shape
        if tensor.datatype == "BYTES":
            return string_tensor(execution.openvino, tensor, shape)
        array = tensor.numpy().reshape(shape)
        if execution.rows > self._rows and shape[:1] == (self._rows,):
            array = _pad_rows(array, execution.rows)
        self._kept.append(array)
        return to_openvino(execution.openvino, array, execution.elements[tensor.datatype])

    def _read_output(self, output: _Output, made: Any) -> Tensor:
        array = to_array(made, output.datatype)
        if self._execution.rows > self._rows:
            array = array[: self._rows]
        return Tensor.from_numpy(
            output.name,
            array if output.client_shape is None else array.reshape(output.client_shape),
        )

    def _read_alias(self, output: _Output) -> Tensor:
        assert output.source_input is not None, (  # noqa: S101
            "only what is not computed is passed on: this is a bug"
        )
        tensor = self._tensors[output.source_input]
        return tensor.view(output.name, output.client_shape or tensor.shape)


def _pad_rows(array: Array, rows: int) -> Array:
    """Return `array` padded with zero rows to `rows` rows."""
    padded = np.zeros((rows, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded
