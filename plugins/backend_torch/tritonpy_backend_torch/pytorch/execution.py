"""Execution of batches in a network, from the server's tensors to the server's tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tritonpy import InvalidArgument, Tensor
from tritonpy_backend_torch.name_mapping import NameMapping
from tritonpy_backend_torch.pytorch.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.pytorch.network import Network
from tritonpy_backend_torch.pytorch.results import parse_result
from tritonpy_backend_torch.pytorch.tensors import from_strings, from_torch
from tritonpy_backend_torch.pytorch.transfer import DeviceTransfer
from tritonpy_backend_torch.settings import ModelSettings


class Execution:
    """Runs the batches of one instance; `outputs` maps each output and state to its data type.

    The model receives copies of its inputs, because it must not write to the memory of requests.
    Once a run has shown that it does not write to inputs, it receives them without a copy.
    """

    def __init__(
        self,
        network: Network,
        mapping: NameMapping,
        outputs: Mapping[str, str],
        transfer: DeviceTransfer,
        settings: ModelSettings,
    ) -> None:
        specs = network.signature.inputs
        self._network = network
        self._mapping = mapping
        self._outputs = outputs
        self._transfer = transfer
        self._takes_dict = network.signature.takes_dict
        self._defaults = [spec.default for spec in specs] or [None] * len(mapping.inputs)
        self._scalars_in = {
            number
            for number, spec in enumerate(specs)
            if spec.info is not None and not spec.info.dims
        }
        self._scalars_out = {
            number
            for number, spec in enumerate(network.signature.outputs)
            if spec.info is not None and not spec.info.dims
        }
        self._channels_last = settings.channels_last
        self._mixed = settings.precision != "fp32"
        self._shares_inputs = (
            False  # until a run has shown that the model does not write to its inputs
        )
        self._writes_inputs = False
        self._weight_addresses = frozenset(
            [tensor.untyped_storage().data_ptr() for tensor in network.weights()]
        )

    def inputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return the network's arguments for the gathered `tensors`, in its order."""
        placed = {tensor.name: self._to_device(tensor) for tensor in tensors}
        if self._takes_dict:
            return [placed]
        values, numbers = list(self._defaults), self._mapping.inputs
        for name, value in placed.items():
            number = numbers[name]
            values[number] = value.reshape(()) if number in self._scalars_in else value
        return values

    def run(self, inputs: list[Any]) -> Any:
        """Run the network and return its result after all device work is done."""
        given = [value for value in _flatten(inputs) if isinstance(value, torch.Tensor)]
        result = self._network(inputs)
        self._transfer.synchronize()
        if not self._writes_inputs:
            self._writes_inputs = any(
                [not value.is_inference() and value._version for value in given]
            )
            self._shares_inputs = not self._writes_inputs
        return result

    def outputs(self, result: Any) -> dict[str, Tensor]:
        """Return the configured outputs of `result`.

        Raises `InvalidArgument` if an output is missing or has another type.
        """
        values = parse_result(result)
        texts, chosen = {}, {}
        for name, datatype in self._outputs.items():
            number = self._mapping.outputs[name]
            value = _pick_output(values, name, number)
            if isinstance(value, torch.Tensor):
                chosen[name] = self._cast_output(name, value, datatype, number)
            else:
                texts[name] = from_strings(name, value)
        fetched = self._transfer.to_host(list(chosen.values()))
        tensors = {
            name: from_torch(name, self._copy_if_weight(value))
            for name, value in zip(chosen, fetched, strict=True)
        }
        return {name: texts.get(name) or tensors[name] for name in self._outputs}

    def _to_device(self, tensor: Tensor) -> Any:
        value = self._transfer.to_device(tensor)
        if not isinstance(value, torch.Tensor):
            return value
        if self._channels_last and value.dim() == 4:
            return value.contiguous(memory_format=torch.channels_last)
        return value if self._shares_inputs else value.clone()

    def _cast_output(self, name: str, value: Any, datatype: str, number: int) -> Any:
        wanted = TORCH_DTYPES.get(datatype)
        if value.dtype != wanted:
            if not (
                self._mixed
                and wanted is not None
                and wanted.is_floating_point
                and value.is_floating_point()
            ):
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

    def _copy_if_weight(self, value: Any) -> Any:
        """Return `value`, copied if it lies in a weight, which the next execution may overwrite."""
        return (
            value.clone()
            if self._weight_addresses
            and value.untyped_storage().data_ptr() in self._weight_addresses
            else value
        )


def _flatten(inputs: list[Any]) -> list[Any]:
    return list(inputs[0].values()) if inputs and isinstance(inputs[0], dict) else list(inputs)


def _pick_output(values: Mapping[str, Any] | Sequence[Any], name: str, number: int) -> Any:
    if isinstance(values, Mapping):
        if name in values:
            return values[name]
        values = list(values.values())
    if number >= len(values):
        raise InvalidArgument(
            f"The output {name} in the model configuration refers to an output index which "
            "doesn't exist. "
            f"This model has {len(values)} outputs"
        )
    return values[number]
