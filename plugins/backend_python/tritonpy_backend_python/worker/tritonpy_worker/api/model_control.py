"""Loading and unloading of models on the server."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from .. import host
from .arguments import argument_type_error, cast_error, has_truth_value, text
from .errors import TritonModelException
from .queries import query, refusal


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model.

    `config` is JSON text and `files` are contents by path ("file:1/model.onnx"); both replace those
    on disk. Raises `TypeError` for arguments of wrong types, `TritonModelException` if the load
    fails.
    """
    name, configuration = text(model_name), text(config)
    if name is None or configuration is None:
        raise argument_type_error(
            "load_model",
            "(model_name: str, config: str = '', files: object = None) -> None",
            model_name,
            config,
            files,
        )
    arguments = {"name": name, "config": configuration, "files": _encoded(name, files)}
    query(host.current(), "Failed to load model", "load_model", arguments)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unload a model, optionally with models that only it needs.

    Raises `TypeError` for arguments of wrong types, `TritonModelException` if the server fails.
    """
    name = text(model_name)
    if name is None or not has_truth_value(unload_dependents):
        signature = "(model_name: str, unload_dependents: bool = False) -> None"
        raise argument_type_error("unload_model", signature, model_name, unload_dependents)
    arguments = {"name": name, "unload_dependents": bool(unload_dependents)}
    query(host.current(), "Failed to unload model", "unload_model", arguments)


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Return true if a model, in the given version or any, is ready.

    Raises `TypeError` for arguments of wrong types, `TritonModelException` for an invalid version
    or if the server fails.
    """
    name, version = text(model_name), text(model_version)
    if name is None or version is None:
        raise argument_type_error(
            "is_model_ready",
            "(model_name: str, model_version: str = '') -> bool",
            model_name,
            model_version,
        )
    failure = "Failed to check model readiness"
    current_host = host.current()
    arguments = {"name": name, "version": _version(current_host, failure, version)}
    return bool(query(current_host, failure, "is_model_ready", arguments))


def _encoded(name: str, files: Any) -> dict[str, str]:
    if files is None:
        return {}
    if not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{name}', files should be a dictionary of file paths and file "
            "contents"
        )
    encoded = {}
    for path, content in files.items():
        key = text(path)
        if key is None:
            raise cast_error()
        if not isinstance(content, bytes):
            raise TypeError(
                f"Object of type '{type(content).__name__}' is not an instance of 'bytes'"
            )
        encoded[key] = b64encode(content).decode()
    return encoded


def _version(current_host: host.Host, failure: str, version: str) -> int:
    """Return the number at the start of `version`, parsed as in C++, or -1 for an empty string."""
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
    raise refusal(current_host, failure, f"{reason}, version should be an integral value > 0")
