"""Frozen graphs: a GraphDef file with a graph and its weights, but no signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tritonpy import Internal
from tritonpy_backend_tf.runtime import free_graph, import_tensorflow
from tritonpy_backend_tf.signature import Signature, TensorInfo, protocol_datatype

_PLACEHOLDER, _OPTIONAL = "Placeholder", "PlaceholderWithDefault"


class FrozenGraph:
    """A GraphDef file."""

    def __init__(self, path: Path, model: str) -> None:
        self._path = path
        self._model = model

    @cached_property
    def signature(self) -> Signature:
        """The signature: placeholders are inputs, and unused tensors are outputs.

        Raises `Internal`, or TensorFlow's exceptions.
        """
        tensorflow = import_tensorflow()
        graph = tensorflow.Graph()
        try:
            with graph.as_default():
                tensorflow.graph_util.import_graph_def(self._read(tensorflow), name="")
            return read_signature(graph.get_operations())
        finally:
            free_graph(graph)

    def restore(self, tensorflow: Any, session: Any, device: str) -> None:
        """Import the graph; `device` replaces every GPU that the graph names."""
        definition = self._read(tensorflow)
        if device:
            for node in definition.node:
                if "cpu" not in node.device.lower():
                    node.device = device
        tensorflow.graph_util.import_graph_def(definition, name="")

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _read(self, tensorflow: Any) -> Any:
        definition = tensorflow.compat.v1.GraphDef()
        try:
            definition.ParseFromString(self._path.read_bytes())
        except DecodeError as error:
            raise Internal(f"{self._path} is not a valid GraphDef: {error}") from error
        if not definition.node:
            raise Internal(f"model {self._model} has an empty network")
        return definition


def read_signature(operations: Iterable[Any]) -> Signature:
    """Return possible inputs and outputs among the operations of a `tf.Graph`."""
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
    """Yield an operation's tensors of supported types.

    The first one is named after the operation.
    """
    for index, tensor in enumerate(operation.outputs):
        datatype = protocol_datatype(tensor.dtype.as_datatype_enum)
        if datatype is not None:
            name = operation.name if index == 0 else tensor.name
            yield name, tensor, TensorInfo(datatype, _dims(tensor.shape), tensor.name)


def _dims(shape: Any) -> tuple[int, ...] | None:
    return (
        None
        if shape.rank is None
        else tuple(-1 if size is None else size for size in shape.as_list())
    )
