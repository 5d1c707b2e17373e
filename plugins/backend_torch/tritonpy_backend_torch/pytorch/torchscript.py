"""TorchScript models."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch

from tritonpy import Internal
from tritonpy_backend_torch.pytorch.deprecations import ignore_deprecations
from tritonpy_backend_torch.pytorch.network import LoadSpec, Network
from tritonpy_backend_torch.pytorch.weight_memory import find_weight_device
from tritonpy_backend_torch.signature import Signature, TensorSpec

_SINGLE_DICT = "Only a single input of type Dict(str, Tensor)"


class TorchScriptNetwork(Network):
    """A TorchScript module; it defines names and types of its inputs, but no shapes."""

    def __init__(self, load_spec: LoadSpec) -> None:
        with ignore_deprecations():
            self._module = torch.jit.load(
                str(load_spec.files.path), map_location=load_spec.device
            ).eval()
        super().__init__(_signature(_arguments(self._module)), find_weight_device(self.weights()))
        if load_spec.settings.channels_last:
            self._module.to(memory_format=torch.channels_last)

    def __call__(self, inputs: list[Any]) -> Any:
        return self._module(*inputs)

    def weights(self) -> Iterable[Any]:
        return chain(self._module.parameters(), self._module.buffers())


def _arguments(module: Any) -> list[Any]:
    arguments = list(module.forward.schema.arguments)
    return arguments[1:] if arguments and arguments[0].type.kind() == "ClassType" else arguments


def _signature(arguments: list[Any]) -> Signature:
    kinds = [_kind(each.type) for each in arguments]
    if kinds == ["DictType"]:
        return Signature((TensorSpec((arguments[0].name,)),), has_free_names=True, takes_dict=True)
    if "DictType" in kinds[1:]:
        raise Internal(
            f"Multiple inputs of kind DictType were detected. {_SINGLE_DICT} is supported."
        )
    for each, kind in zip(arguments, kinds, strict=True):
        if kind not in {"TensorType", "ListType"}:
            raise Internal(
                f"An input of type '{each.type.str()}' was detected in the model. "
                f"{_SINGLE_DICT} or input(s) of type Tensor are supported."
            )
    return Signature(tuple([_place(each) for each in arguments]), has_free_names=True)


def _place(argument: Any) -> TensorSpec:
    optional = argument.has_default_value()
    return TensorSpec(
        (argument.name,),
        required=not optional,
        default=argument.default_value if optional else None,
    )


def _kind(found: Any) -> str:
    """Return the kind of a type; for an optional type, the kind of its element type."""
    kind: str = found.kind()
    return _kind(found.getElementType()) if kind == "OptionalType" else kind
