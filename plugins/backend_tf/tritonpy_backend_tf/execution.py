"""Execution of one batch in a session, without copies where TensorFlow allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Tensor
from tritonpy.execution import CPU
from tritonpy_backend_tf.signature import TensorInfo

Array = npt.NDArray[Any]
Run = Callable[..., Sequence[Any]]


class Execution:
    """Computes a fixed set of outputs of a model.

    `prepare` returns a callable that runs the graph from given tensors to others, by their names in
    the graph. `scalars` maps each output that is a scalar in the model to the shape that clients
    see. The callable for the `required` inputs is created immediately, which raises TensorFlow's
    exceptions.
    """

    def __init__(
        self,
        prepare: Callable[[Sequence[str], Sequence[str]], Run],
        inputs: Mapping[str, TensorInfo],
        outputs: Mapping[str, TensorInfo],
        scalars: Mapping[str, tuple[int, ...]],
        required: Sequence[str] = (),
    ) -> None:
        self._prepare = prepare
        self._inputs = inputs
        self._outputs = outputs
        self._scalars = scalars
        # by the inputs of the batch: optional ones may be missing
        self._callables: dict[tuple[str, ...], Run] = {}
        if required:
            self._create_callable(tuple(sorted(required)))

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the outputs by name; raise TensorFlow's exceptions."""
        tensors = sorted(tensors, key=_name)  # else each order of inputs would get its own callable
        names = tuple([tensor.name for tensor in tensors])
        run = self._callables.get(names) or self._create_callable(names)
        values = run(*[self._array(tensor) for tensor in tensors])
        return {
            name: self._tensor(name, info.datatype, value)
            for (name, info), value in zip(self._outputs.items(), values, strict=True)
        }

    def _create_callable(self, names: tuple[str, ...]) -> Run:
        feeds = [self._inputs[name].tensor for name in names]
        run = self._callables[names] = self._prepare(
            feeds, [info.tensor for info in self._outputs.values()]
        )
        return run

    def _array(self, tensor: Tensor) -> Array:
        plain = tensor.device == CPU and tensor.datatype != "BYTES"
        array: Array = tensor.data if plain else tensor.numpy()
        return array.reshape(()) if self._inputs[tensor.name].dims == () else array

    def _tensor(self, name: str, datatype: str, value: Any) -> Tensor:
        shape = self._scalars.get(name)
        if shape is not None:
            value = to_scalar_array(value, datatype, shape)
        if datatype == "BYTES":
            return Tensor.from_numpy(name, value)
        return Tensor(name, datatype, value.shape, value)


def _name(tensor: Tensor) -> str:
    return tensor.name


def to_scalar_array(value: Any, datatype: str, shape: tuple[int, ...]) -> Array:
    """Return a TensorFlow scalar as an array of `shape` (all ones), with `bytes` for strings."""
    array = np.empty(shape, np.object_ if datatype == "BYTES" else np.asarray(value).dtype)
    array.fill(value)
    return array
