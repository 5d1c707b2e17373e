"""Models that are classes in a Python file, with weights in a file next to it."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import logging
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch.network import LoadSpec, Network
from tritonpy_backend_torch.pytorch.torch_compile import compile_module, has_compiler
from tritonpy_backend_torch.pytorch.weight_memory import find_weight_device
from tritonpy_backend_torch.pytorch.weights import state_dict
from tritonpy_backend_torch.signature import Signature, TensorSpec

_module_numbers = itertools.count(1)
_NAMED = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.POSITIONAL_ONLY,
}


class ModuleNetwork(Network):
    """A `torch.nn.Module`; the parameters of `forward` define its inputs."""

    def __init__(self, load_spec: LoadSpec, module: Any) -> None:
        settings = load_spec.settings
        if load_spec.device is not None:
            module.to(load_spec.device)
        if settings.channels_last:
            module.to(memory_format=torch.channels_last)
        self._weights = module.eval()
        self._run = _compile(module, load_spec)
        parameters = _parameters(module)
        self._positional = sum(
            each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters
        )
        self._keywords = [each.name for each in parameters[self._positional :]]
        super().__init__(_signature(parameters), find_weight_device(self.weights()))

    def __call__(self, inputs: list[Any]) -> Any:
        if not self._keywords:
            return self._run(*inputs)
        named = dict(zip(self._keywords, inputs[self._positional :], strict=True))
        return self._run(*inputs[: self._positional], **named)

    def weights(self) -> Iterable[Any]:
        return chain(self._weights.parameters(), self._weights.buffers())


def class_network(load_spec: LoadSpec) -> ModuleNetwork:
    """Return the network of the class in a Python file.

    Raises `InvalidArgument` if the file, the class or its weights cannot be loaded.
    """
    files, settings = load_spec.files, load_spec.settings
    module = _instantiate(
        _select_class(_import_file(files.path), settings.model_class, load_spec.log, files.path),
        files.path,
    )
    if files.weights is None:
        load_spec.log.info("Model parameter file not found for '%s'", load_spec.model)
        return ModuleNetwork(load_spec, module)
    weights = state_dict(files.weights, load_spec.device, settings.allow_pickles)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise InvalidArgument(
            f"the weights in '{files.weights}' do not fit the class in '{files.path}': {error}"
        ) from error
    return ModuleNetwork(load_spec, module)


def _import_file(path: Path) -> Any:
    """Import the file as a unique module, since two models may have files of the same name."""
    spec = importlib.util.spec_from_file_location(
        f"tritonpy_torch_model_{next(_module_numbers)}", path
    )
    assert spec is not None, "a Python file has a loader: this is a bug"  # noqa: S101
    assert spec.loader is not None, "a Python file has a loader: this is a bug"  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidArgument(
            f"'{path}' cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def _select_class(
    module: Any, name: str, log: logging.LoggerAdapter[logging.Logger], path: Path
) -> Any:
    classes = {
        key: each
        for key, each in sorted(vars(module).items())
        if isinstance(each, type) and issubclass(each, torch.nn.Module)
    }
    if name:
        if name not in classes:
            raise InvalidArgument(
                f"'{path}' has no subclass '{name}' of torch.nn.Module, which MODEL_CLASS names"
            )
        return classes[name]
    own = [each for each in classes.values() if each.__module__ == module.__name__] or list(
        classes.values()
    )
    if not own:
        raise InvalidArgument(f"Cannot find a subclass of torch.nn.Module in '{path}'")
    if len(own) > 1:
        log.warning(
            (
                "'%s' has several subclasses of torch.nn.Module, using '%s': "
                "set MODEL_CLASS to choose one"
            ),
            path,
            own[0].__name__,
        )
    return own[0]


def _instantiate(kind: Any, path: Path) -> Any:
    try:
        return kind()
    except Exception as error:
        raise InvalidArgument(
            f"class {kind.__name__} of '{path}' cannot be created without arguments: "
            f"{type(error).__name__}: {error}"
        ) from error


def _compile(module: Any, load_spec: LoadSpec) -> Any:
    """Return `module` compiled, or unchanged if optional compilation has no compiler."""
    arguments = load_spec.settings.compile
    if arguments is None and not has_compiler():
        load_spec.log.warning(
            "'%s' runs without torch.compile: no C++ compiler is installed", load_spec.model
        )
        return module
    return compile_module(module, arguments or {})


def _parameters(module: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(module.forward).parameters.values())
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return []  # it accepts the inputs in the order of the configuration
    return [each for each in parameters if each.kind in _NAMED]


def _signature(parameters: list[inspect.Parameter]) -> Signature:
    takes_dict = len(parameters) == 1 and _is_dict(parameters[0].annotation)
    return Signature(
        tuple([_place(each) for each in parameters]), has_free_names=True, takes_dict=takes_dict
    )


def _place(parameter: inspect.Parameter) -> TensorSpec:
    required = parameter.default is inspect.Parameter.empty
    return TensorSpec(
        (parameter.name,), required=required, default=None if required else parameter.default
    )


def _is_dict(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return text.removeprefix("typing.").lower().startswith("dict")
