"""TorchScript models."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch

from tritonpy import Internal
from tritonpy_backend_torch.serving.homes import home_of
from tritonpy_backend_torch.serving.network import Network, Opening
from tritonpy_backend_torch.serving.quiet import quietly
from tritonpy_backend_torch.signature import Place, Signature

_SINGLE_DICT = "Only a single input of type Dict(str, Tensor)"


class ScriptNetwork(Network):
    """A module of TorchScript: its arguments have names, their types are all that it says of them."""

    def __init__(self, opening: Opening) -> None:
        with quietly():
            self._module = torch.jit.load(str(opening.files.path), map_location=opening.device).eval()
        super().__init__(_signature(_arguments(self._module)), home_of(self.weights()))
        if opening.settings.channels_last:
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
        return Signature((Place((arguments[0].name,)),), named_freely=True, takes_dict=True)
    if "DictType" in kinds[1:]:
        raise Internal(f"Multiple inputs of kind DictType were detected. {_SINGLE_DICT} is supported.")
    for each, kind in zip(arguments, kinds, strict=True):
        if kind not in {"TensorType", "ListType"}:
            raise Internal(
                f"An input of type '{each.type.str()}' was detected in the model. {_SINGLE_DICT} or input(s) of type Tensor are supported."
            )
    return Signature(tuple([_place(each) for each in arguments]), named_freely=True)


def _place(argument: Any) -> Place:
    optional = argument.has_default_value()
    return Place((argument.name,), required=not optional, default=argument.default_value if optional else None)


def _kind(found: Any) -> str:
    """Return the kind of a type, of what is in it where it may be None."""
    kind: str = found.kind()
    return _kind(found.getElementType()) if kind == "OptionalType" else kind
