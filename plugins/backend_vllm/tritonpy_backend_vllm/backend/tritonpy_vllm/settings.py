"""The settings of a model: `model.json`, `multi_lora.json` and parameters of `config.pbtxt`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

_ENGINE_ARGUMENTS, _ADAPTERS = "model.json", "multi_lora.json"


class SettingsFault(ValueError):
    """A file or a parameter of the model is missing or invalid."""


def engine_arguments(folder: str) -> dict[str, Any]:
    """Return the arguments of the engine from `model.json` in the folder of the version.

    A model that is a path inside the folder becomes absolute. Raises SettingsFault.
    """
    path = os.path.join(folder, _ENGINE_ARGUMENTS)
    if not os.path.isfile(path):
        raise SettingsFault(
            f"'{_ENGINE_ARGUMENTS}' containing vllm engine args must be provided in '{folder}'"
        )
    arguments = _read_object(path)
    for name in ("model", "tokenizer"):
        value = arguments.get(name)
        if isinstance(value, str) and not os.path.isabs(value):
            inside = os.path.normpath(os.path.join(folder, value))
            if inside.startswith(os.path.join(folder, "")) and os.path.exists(inside):
                arguments[name] = inside
            elif value in {".", "./"}:
                arguments[name] = folder
    return arguments


def check_devices(arguments: Mapping[str, Any], kind: str) -> None:
    """Raise SettingsFault if an instance on one GPU needs several."""
    sizes = (
        int(arguments.get(name, 1)) for name in ("tensor_parallel_size", "pipeline_parallel_size")
    )
    tensor, pipeline = sizes
    if tensor * pipeline > 1 and kind == "GPU":
        raise SettingsFault(
            "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL in the model's "
            "config.pbtxt for multi-GPU models"
        )


def adapters(arguments: Mapping[str, Any], folder: str) -> dict[str, str] | None:
    """Return the paths of the LoRA adapters by name, None if LoRA is not enabled.

    Relative paths are relative to the folder of the version.
    """
    if str(arguments.get("enable_lora", "")).lower() != "true":
        return None
    path = os.path.join(folder, _ADAPTERS)
    if not os.path.isfile(path):
        raise SettingsFault(f"Triton backend cannot find {path}.")
    return {
        name: value if os.path.isabs(value) else os.path.join(folder, value)
        for name, value in _read_object(path).items()
    }


def flag(config: Mapping[str, Any], name: str) -> bool:
    """Return whether a parameter of `config.pbtxt` is "true"."""
    value = config.get("parameters", {}).get(name, {}).get("string_value", "")
    return str(value).lower() == "true"


def _read_object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise SettingsFault(f"cannot read {path}: {error}") from error
    if not isinstance(value, dict):
        raise SettingsFault(f"{path} must contain a JSON object")
    return value
