"""A GraphDef as a session runs it: one file with the graph and its weights, and no word of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tritonpy import Internal
from tritonpy_backend_tf.runtime import dismantle
from tritonpy_backend_tf.runtime import tensorflow as import_tensorflow
from tritonpy_backend_tf.signature import Signature, TensorInfo, datatype_of_type

_PLACEHOLDER, _OPTIONAL = "Placeholder", "PlaceholderWithDefault"


class FrozenGraph:
    """The file of a GraphDef."""

    def __init__(self, path: Path, model: str) -> None:
        self._path = path
        self._model = model

    @cached_property
    def signature(self) -> Signature:
        """Placeholders are inputs, what nothing else uses is output. Raises Internal, or what TensorFlow raises."""
        tensorflow = import_tensorflow()
        graph = tensorflow.Graph()
        try:
            with graph.as_default():
                tensorflow.graph_util.import_graph_def(self._read(tensorflow), name="")
            return signature_of(graph.get_operations())
        finally:
            dismantle(graph)

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Build the graph; `device` stands for every GPU that the graph names."""
        definition = self._read(tensorflow)
        if device:
            for node in definition.node:
                if "cpu" not in node.device.lower():
                    node.device = device
        tensorflow.graph_util.import_graph_def(definition, name="")

    def close(self) -> None:
        """Nothing is open."""

    def _read(self, tensorflow: Any) -> Any:
        definition = tensorflow.compat.v1.GraphDef()
        try:
            definition.ParseFromString(self._path.read_bytes())
        except DecodeError as error:
            raise Internal(
                f"{self._path} cannot be read as a GraphDef, it is damaged or something else: {error}"
            ) from error
        if not definition.node:
            raise Internal(f"model {self._model} has an empty network")
        return definition


def signature_of(operations: Iterable[Any]) -> Signature:
    """Return the candidates for inputs and outputs among the operations of a `tf.Graph`."""
    inputs, optional, outputs, inner = {}, {}, {}, {}
    for operation in operations:
        for name, tensor, info in _tensors(operation):
            if operation.type == _PLACEHOLDER:
                inputs[name] = info
            elif operation.type == _OPTIONAL:
                optional[name] = info
            elif tensor.consumers() or operation.type == "Const":
                inner[name] = info
            else:
                outputs[name] = info
    return Signature(inputs, outputs, optional, inner, exact=False)


def _tensors(operation: Any) -> Iterator[tuple[str, Any, TensorInfo]]:
    """Yield the tensors of an operation that the protocol can carry; the first one has the name of the operation."""
    for index, tensor in enumerate(operation.outputs):
        datatype = datatype_of_type(tensor.dtype.as_datatype_enum)
        if datatype is not None:
            name = operation.name if index == 0 else tensor.name
            yield name, tensor, TensorInfo(datatype, _dims(tensor.shape), tensor.name)


def _dims(shape: Any) -> tuple[int, ...] | None:
    return None if shape.rank is None else tuple(-1 if size is None else size for size in shape.as_list())
