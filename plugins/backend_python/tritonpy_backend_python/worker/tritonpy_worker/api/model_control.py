"""Loading and unloading of models of the server."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from .. import host
from .arguments import is_truth, mismatch, text, uncastable
from .errors import TritonModelException
from .questions import ask, refusal


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model: with a configuration as JSON text, and files by path ("file:1/model.onnx"), instead of those on disk.

    Raises TypeError for other types of arguments, TritonModelException where the server cannot.
    """
    name, configuration = text(model_name), text(config)
    if name is None or configuration is None:
        raise mismatch(
            "load_model", "(model_name: str, config: str = '', files: object = None) -> None", model_name, config, files
        )
    arguments = {"name": name, "config": configuration, "files": _encoded(name, files)}
    ask(host.current(), "Failed to load model", "load_model", arguments)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unload a model, on request with those that only it needs.

    Raises TypeError for other types of arguments, TritonModelException where the server cannot.
    """
    name = text(model_name)
    if name is None or not is_truth(unload_dependents):
        signature = "(model_name: str, unload_dependents: bool = False) -> None"
        raise mismatch("unload_model", signature, model_name, unload_dependents)
    arguments = {"name": name, "unload_dependents": bool(unload_dependents)}
    ask(host.current(), "Failed to unload model", "unload_model", arguments)


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Say whether a model serves: that version, or any.

    Raises TypeError for other types of arguments, TritonModelException for a version that is no number and where the server cannot say.
    """
    name, version = text(model_name), text(model_version)
    if name is None or version is None:
        raise mismatch(
            "is_model_ready", "(model_name: str, model_version: str = '') -> bool", model_name, model_version
        )
    failure = "Failed to check model readiness"
    asked = host.current()
    arguments = {"name": name, "version": _version(asked, failure, version)}
    return bool(ask(asked, failure, "is_model_ready", arguments))


def _encoded(name: str, files: Any) -> dict[str, str]:
    if files is None:
        return {}
    if not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{name}', files should be a dictionary of file paths and file contents"
        )
    encoded = {}
    for path, content in files.items():
        key = text(path)
        if key is None:
            raise uncastable()
        if not isinstance(content, bytes):
            raise TypeError(f"Object of type '{type(content).__name__}' is not an instance of 'bytes'")
        encoded[key] = b64encode(content).decode()
    return encoded


def _version(asked: host.Host, failure: str, version: str) -> int:
    """Return the number that the text begins with, as C++ reads it, -1 for an empty text."""
    if not version:
        return -1
    found = re.match(r"\s*[+-]?\d+", version)
    number = int(found.group()) if found else None
    if number is None or not -(1 << 63) <= number < 1 << 63:
        detail = " (details: stol)"
    elif number < 0:
        detail = ""
    else:
        return number
    reason = f"failed to get model version from specified version string '{version}'{detail}"
    raise refusal(asked, failure, f"{reason}, version should be an integral value > 0")
