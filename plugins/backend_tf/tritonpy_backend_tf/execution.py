"""Runs one batch in a session: arrays go in and come out without a copy, as far as TensorFlow lets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import CPU, Tensor
from tritonpy_backend_tf.signature import TensorInfo

Array = npt.NDArray[Any]
Run = Callable[..., Sequence[Any]]


class Execution:
    """Computes the same outputs of a model again and again.

    `prepare` returns what runs the graph from certain tensors to others, by their names there. `scalars` maps outputs that are scalars in the
    model to the shape that clients see. What needs the inputs `required` alone is prepared at once; that raises what TensorFlow raises.
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
        self._runs: dict[tuple[str, ...], Run] = {}  # by the inputs that are there: optional ones may be left out
        if required:
            self._prepared(tuple(sorted(required)))

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the outputs by name. Raises what TensorFlow raises."""
        tensors = sorted(tensors, key=_name)  # else each order in which clients list them would be prepared
        names = tuple([tensor.name for tensor in tensors])
        run = self._runs.get(names) or self._prepared(names)
        values = run(*[self._array(tensor) for tensor in tensors])
        return {
            name: self._tensor(name, info.datatype, value)
            for (name, info), value in zip(self._outputs.items(), values, strict=True)
        }

    def _prepared(self, names: tuple[str, ...]) -> Run:
        feeds = [self._inputs[name].tensor for name in names]
        run = self._runs[names] = self._prepare(feeds, [info.tensor for info in self._outputs.values()])
        return run

    def _array(self, tensor: Tensor) -> Array:
        plain = tensor.device == CPU and tensor.datatype != "BYTES"
        array: Array = tensor.data if plain else tensor.numpy()
        return array.reshape(()) if self._inputs[tensor.name].dims == () else array

    def _tensor(self, name: str, datatype: str, value: Any) -> Tensor:
        shape = self._scalars.get(name)
        if shape is not None:
            value = scalar(value, datatype, shape)
        if datatype == "BYTES":
            return Tensor.from_numpy(name, value)
        return Tensor(name, datatype, value.shape, value)


def _name(tensor: Tensor) -> str:
    return tensor.name


def scalar(value: Any, datatype: str, shape: tuple[int, ...]) -> Array:
    """Return what TensorFlow gives for a scalar, as an array of `shape` (all ones); texts are `bytes` in it."""
    array = np.empty(shape, np.object_ if datatype == "BYTES" else np.asarray(value).dtype)
    array.fill(value)
    return array
