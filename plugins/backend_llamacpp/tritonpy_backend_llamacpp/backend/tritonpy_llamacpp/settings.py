"""The settings of a model: its GGUF file, `model.json`, `multi_lora.json`, and its parameters."""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

_SETTINGS, _ADAPTERS = "model.json", "multi_lora.json"
_DEFAULT_FILE = "model.gguf"
_MAGIC = b"GGUF"
_SAMPLE_S = 0.2
_TASKS = ("generate", "embed", "rerank")
_POOLING = ("mean", "cls", "last")


class InvalidLlamaSettings(ValueError):
    """A file or a setting of the model is missing or invalid."""


@dataclass
class LlamaSettings:
    """The settings of a model, all of them optional.

    `task` is a parameter of `config.pbtxt`, `adapters` are in `multi_lora.json`, the others in
    `model.json`. `model` is a file in the version's folder. `context` is the number of tokens that
    all running requests share, prompts and responses together. `parallel` requests run at a time,
    the others wait. `threads` 0 means the free cores. `gpu_layers` -1 means as many as fit.
    """

    model: str = ""
    task: str = field(default="generate", metadata={"file": "config.pbtxt"})
    context: int = 8192
    parallel: int = 4
    threads: int = 0
    batch: int = 2048
    gpu_layers: int = -1
    pooling: str = ""
    cache_mib: int = 1024
    adapters: dict[str, str] = field(default_factory=dict, metadata={"file": _ADAPTERS})


def read_settings(folder: str, config: Mapping[str, Any]) -> LlamaSettings:
    """Return the settings of the version in `folder`. Raises InvalidLlamaSettings."""
    settings = _settings(os.path.join(folder, _SETTINGS))
    settings.task = task_of(config)
    settings.model = _model_file(folder, settings.model or config.get("default_model_filename", ""))
    path = os.path.join(folder, _ADAPTERS)
    if os.path.isfile(path):
        settings.adapters = {
            name: _file(folder, str(value), _ADAPTERS) for name, value in _object(path).items()
        }
    settings.threads = settings.threads or free_cores()
    return settings


def task_of(config: Mapping[str, Any]) -> str:
    """Return the parameter `task` of the configuration. Raises InvalidLlamaSettings."""
    parameter = config.get("parameters", {}).get("task", {})
    task = str(parameter.get("string_value") or _TASKS[0])
    if task not in _TASKS:
        raise InvalidLlamaSettings(
            f"the parameter 'task' must be one of {', '.join(_TASKS)}, got '{task}'"
        )
    return task


def free_cores() -> int:
    """Return the number of cores that other work leaves free, at least half of the available ones.

    The threads of llama.cpp wait for each other after each layer: one that has no core of its own
    slows down all others.
    """
    available = len(os.sched_getaffinity(0))
    quota = _cpu_quota()
    if quota is not None:
        available = max(1, min(available, int(quota)))
    return max(1, (available + 1) // 2, min(available, round(_idle_cores())))


def _idle_cores() -> float:
    """Return how many cores of the machine are idle now, measured for a moment."""
    idle_before = _idle_s()
    began = time.monotonic()
    time.sleep(_SAMPLE_S)
    return (_idle_s() - idle_before) / (time.monotonic() - began)


def _idle_s() -> float:
    """Return the time that all cores together were idle, 0 if it is unknown."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            _, _, _, _, idle, waiting, *_ = file.readline().split()
    except (OSError, ValueError):
        return 0.0
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


def _cpu_quota() -> float | None:
    """Return the CPU limit of the container in cores, None without one."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _settings(path: str) -> LlamaSettings:
    if not os.path.isfile(path):
        return LlamaSettings()
    kinds = {each.name: each.type for each in fields(LlamaSettings) if not each.metadata}
    given = _object(path)
    for name, value in given.items():
        if name not in kinds:
            close = difflib.get_close_matches(name, kinds, 1)
            hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(kinds)}"
            raise InvalidLlamaSettings(f"{path} has an unknown setting '{name}'. {hint}")
        expected = int if kinds[name] == "int" else str
        if not isinstance(value, expected) or isinstance(value, bool):
            raise InvalidLlamaSettings(
                f"{path}: '{name}' must be {'a number' if expected is int else 'a text'}, "
                f"got {json.dumps(value)}"
            )
    settings = LlamaSettings(**given)
    for name, least in (("context", 1), ("parallel", 1), ("threads", 0), ("batch", 1)):
        if getattr(settings, name) < least:
            raise InvalidLlamaSettings(f"{path}: '{name}' must be at least {least}")
    if settings.pooling not in ("", *_POOLING):
        raise InvalidLlamaSettings(
            f"{path}: 'pooling' must be one of {', '.join(_POOLING)}, got '{settings.pooling}'"
        )
    return settings


def _model_file(folder: str, given: str) -> str:
    if given:
        path = _file(folder, given, _SETTINGS)
    else:
        found = sorted(name for name in os.listdir(folder) if name.endswith(".gguf"))
        if not found:
            raise InvalidLlamaSettings(
                f"the folder {folder} has no GGUF file: put the model there as '{_DEFAULT_FILE}'"
            )
        # Of a model in several files, the first one names the others.
        if len(found) > 1 and "-00001-of-" not in found[0]:
            raise InvalidLlamaSettings(
                f"the folder {folder} has several GGUF files ({', '.join(found)}): name one as "
                f"'model' in {_SETTINGS}"
            )
        path = os.path.join(folder, found[0])
    with open(path, "rb") as file:
        magic = file.read(len(_MAGIC))
    if magic != _MAGIC:
        raise InvalidLlamaSettings(f"{path} is no GGUF file: it begins with {magic!r}")
    return path


def _file(folder: str, name: str, where: str) -> str:
    """Return the path of a file inside the version's folder. Raises InvalidLlamaSettings."""
    path = os.path.normpath(os.path.join(folder, name))
    if not path.startswith(os.path.join(folder, "")):
        raise InvalidLlamaSettings(f"{where} names '{name}', which is outside of {folder}")
    if not os.path.isfile(path):
        raise InvalidLlamaSettings(f"{where} names '{name}', which does not exist in {folder}")
    return path


def _object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise InvalidLlamaSettings(f"cannot read {path}: {error}") from error
    if not isinstance(value, dict):
        raise InvalidLlamaSettings(f"{path} must contain a JSON object")
    return value
