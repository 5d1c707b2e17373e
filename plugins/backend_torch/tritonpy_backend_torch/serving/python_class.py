"""Models that are classes in a Python file, with their weights beside it."""

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
from tritonpy_backend_torch.serving.compiling import compiled, has_compiler
from tritonpy_backend_torch.serving.homes import home_of
from tritonpy_backend_torch.serving.network import Network, Opening
from tritonpy_backend_torch.serving.weights import state_dict
from tritonpy_backend_torch.signature import Place, Signature

_serial = itertools.count(1)
_NAMED = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_ONLY}


class ModuleNetwork(Network):
    """A `torch.nn.Module`: its `forward` says what its arguments are called."""

    def __init__(self, opening: Opening, module: Any) -> None:
        settings = opening.settings
        if opening.device is not None:
            module.to(opening.device)
        if settings.channels_last:
            module.to(memory_format=torch.channels_last)
        self._weights = module.eval()
        self._run = _compiled(module, opening)
        parameters = _parameters(module)
        self._positional = sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters)
        self._keywords = [each.name for each in parameters[self._positional :]]
        super().__init__(_signature(parameters), home_of(self.weights()))

    def __call__(self, inputs: list[Any]) -> Any:
        if not self._keywords:
            return self._run(*inputs)
        named = dict(zip(self._keywords, inputs[self._positional :], strict=True))
        return self._run(*inputs[: self._positional], **named)

    def weights(self) -> Iterable[Any]:
        return chain(self._weights.parameters(), self._weights.buffers())


def class_network(opening: Opening) -> ModuleNetwork:
    """Return the network of the class in a Python file; raises InvalidArgument where the file, the class or its weights do not work."""
    files, settings = opening.files, opening.settings
    module = _made(_chosen(_imported(files.path), settings.model_class, opening.log, files.path), files.path)
    if files.weights is None:
        opening.log.info("Model parameter file not found for '%s'", opening.model)
        return ModuleNetwork(opening, module)
    weights = state_dict(files.weights, opening.device, settings.allow_pickles)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise InvalidArgument(
            f"the weights in '{files.weights}' do not fit the class in '{files.path}': {error}"
        ) from error
    return ModuleNetwork(opening, module)


def _imported(path: Path) -> Any:
    """Return the file as a module of its own: two models may have files of the same name."""
    spec = importlib.util.spec_from_file_location(f"tritonpy_torch_model_{next(_serial)}", path)
    assert spec is not None, "a Python file has a loader: this is a bug"  # noqa: S101
    assert spec.loader is not None, "a Python file has a loader: this is a bug"  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidArgument(f"'{path}' cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _chosen(module: Any, name: str, log: logging.LoggerAdapter[logging.Logger], path: Path) -> Any:
    classes = {
        key: each
        for key, each in sorted(vars(module).items())
        if isinstance(each, type) and issubclass(each, torch.nn.Module)
    }
    if name:
        if name not in classes:
            raise InvalidArgument(f"'{path}' has no class '{name}' of torch.nn.Module, which MODEL_CLASS asks for")
        return classes[name]
    own = [each for each in classes.values() if each.__module__ == module.__name__] or list(classes.values())
    if not own:
        raise InvalidArgument(f"Cannot find a subclass of torch.nn.Module in '{path}'")
    if len(own) > 1:
        log.warning(
            "'%s' has several classes of torch.nn.Module, '%s' is served: MODEL_CLASS chooses", path, own[0].__name__
        )
    return own[0]


def _made(kind: Any, path: Path) -> Any:
    try:
        return kind()
    except Exception as error:
        raise InvalidArgument(
            f"class {kind.__name__} of '{path}' cannot be made without arguments: {type(error).__name__}: {error}"
        ) from error


def _compiled(module: Any, opening: Opening) -> Any:
    """Return `module` as it is to run: compiled, unless nobody asked for that and there is no compiler."""
    wish = opening.settings.compile
    if wish is None and not has_compiler():
        opening.log.warning("'%s' runs without torch.compile: there is no C++ compiler", opening.model)
        return module
    return compiled(module, wish or {})


def _parameters(module: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(module.forward).parameters.values())
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return []  # it takes what the configuration lists
    return [each for each in parameters if each.kind in _NAMED]


def _signature(parameters: list[inspect.Parameter]) -> Signature:
    takes_dict = len(parameters) == 1 and _is_dict(parameters[0].annotation)
    return Signature(tuple([_place(each) for each in parameters]), named_freely=True, takes_dict=takes_dict)


def _place(parameter: inspect.Parameter) -> Place:
    required = parameter.default is inspect.Parameter.empty
    return Place((parameter.name,), required=required, default=None if required else parameter.default)


def _is_dict(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return text.removeprefix("typing.").lower().startswith("dict")
