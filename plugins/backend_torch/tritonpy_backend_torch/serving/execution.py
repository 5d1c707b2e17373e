"""Runs batches through a network: tensors of the server in, tensors of the server out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tritonpy import InvalidArgument, Tensor
from tritonpy_backend_torch.naming import Naming
from tritonpy_backend_torch.serving.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.serving.lanes import Lane
from tritonpy_backend_torch.serving.network import Network
from tritonpy_backend_torch.serving.results import listed
from tritonpy_backend_torch.serving.tensors import lent, lent_texts
from tritonpy_backend_torch.settings import TorchSettings


class Execution:
    """One instance's way from inputs to outputs. `outputs` has the data type of each, states among them.

    The model gets the memory that requests arrived in, which is not its to write to: at first it gets copies, and goes on getting them if it wrote.
    """

    def __init__(
        self, network: Network, naming: Naming, outputs: Mapping[str, str], lane: Lane, settings: TorchSettings
    ) -> None:
        places = network.signature.inputs
        self._network = network
        self._naming = naming
        self._outputs = outputs
        self._lane = lane
        self._takes_dict = network.signature.takes_dict
        self._defaults = [place.default for place in places] or [None] * len(naming.inputs)
        self._scalars_in = {
            number for number, place in enumerate(places) if place.info is not None and not place.info.dims
        }
        self._scalars_out = {
            number
            for number, place in enumerate(network.signature.outputs)
            if place.info is not None and not place.info.dims
        }
        self._channels_last = settings.channels_last
        self._mixed = settings.precision != "fp32"
        self._lends = False  # until a run has shown that the model leaves its inputs alone
        self._writes = False
        self._kept = frozenset([tensor.untyped_storage().data_ptr() for tensor in network.weights()])

    def inputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return what the network takes of the gathered `tensors`, in its order."""
        placed = {tensor.name: self._placed(tensor) for tensor in tensors}
        if self._takes_dict:
            return [placed]
        values, numbers = list(self._defaults), self._naming.inputs
        for name, value in placed.items():
            number = numbers[name]
            values[number] = value.reshape(()) if number in self._scalars_in else value
        return values

    def run(self, inputs: list[Any]) -> Any:
        """Return the network's result, computed."""
        given = [value for value in _flat(inputs) if isinstance(value, torch.Tensor)]
        result = self._network(inputs)
        self._lane.settle()
        if not self._writes:
            self._writes = any([not value.is_inference() and value._version for value in given])
            self._lends = not self._writes
        return result

    def told(self, result: Any) -> dict[str, Tensor]:
        """Return the configured outputs of a result; raises InvalidArgument for one that is not there or of another type."""
        values = listed(result)
        texts, chosen = {}, {}
        for name, datatype in self._outputs.items():
            number = self._naming.outputs[name]
            value = _picked(values, name, number)
            if isinstance(value, torch.Tensor):
                chosen[name] = self._typed(name, value, datatype, number)
            else:
                texts[name] = lent_texts(name, value)
        fetched = self._lane.fetched(list(chosen.values()))
        tensors = {name: lent(name, self._apart(value)) for name, value in zip(chosen, fetched, strict=True)}
        return {name: texts.get(name) or tensors[name] for name in self._outputs}

    def _placed(self, tensor: Tensor) -> Any:
        value = self._lane.placed(tensor)
        if not isinstance(value, torch.Tensor):
            return value
        if self._channels_last and value.dim() == 4:
            return value.contiguous(memory_format=torch.channels_last)
        return value if self._lends else value.clone()

    def _typed(self, name: str, value: Any, datatype: str, number: int) -> Any:
        wanted = TORCH_DTYPES.get(datatype)
        if value.dtype != wanted:
            if not (self._mixed and wanted is not None and wanted.is_floating_point and value.is_floating_point()):
                raise InvalidArgument(
                    f"configuration expects datatype TYPE_{datatype} for output '{name}', "
                    f"model provides TYPE_{DATATYPE_NAMES.get(value.dtype, 'INVALID')}"
                )
            value = value.to(wanted)
        if value.dim() == 0:
            if number not in self._scalars_out:
                raise InvalidArgument(f"output '{name}' is a scalar which is not supported.")
            value = value.reshape(1)
        return value.detach()

    def _apart(self, value: Any) -> Any:
        """Return `value`, as a copy where it lies in the model's own memory, which the next execution may write to."""
        return value.clone() if self._kept and value.untyped_storage().data_ptr() in self._kept else value


def _flat(inputs: list[Any]) -> list[Any]:
    return list(inputs[0].values()) if inputs and isinstance(inputs[0], dict) else list(inputs)


def _picked(values: Mapping[str, Any] | Sequence[Any], name: str, number: int) -> Any:
    if isinstance(values, Mapping):
        if name in values:
            return values[name]
        values = list(values.values())
    if number >= len(values):
        raise InvalidArgument(
            f"The output {name} in the model configuration refers to an output index which doesn't exist. "
            f"This model has {len(values)} outputs"
        )
    return values[number]
