"""A model's `auto_complete_config`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from .api.model_config import ModelConfig
from .failure import Refused, describe
from .forkable import fork
from .ipc.lifeline import Lifeline


def complete(module: Any, name: str, config: str) -> str:
    """Return the configuration, JSON text in and out, as the model's class completes it. Raises Refused, and what the model raises."""
    completed = ModelConfig(config)
    if hasattr(module.TritonPythonModel, "auto_complete_config"):
        completed = module.TritonPythonModel.auto_complete_config(completed)
    if not isinstance(completed, ModelConfig):
        raise Refused(f"auto_complete_config function in model '{name}' must return a valid pb.ModelConfig object.")
    return json.dumps(completed.as_dict())


def in_fork(act: Callable[[], str]) -> str:
    """Return what `act` returns in a process of its own. Raises Refused with what it raises there, or with how the process ended."""
    read, write = os.pipe()
    tied, held = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(read)
        os.close(held)
        Lifeline(write).hold(tied)
        _say(write, act)
    os.close(write)
    os.close(tied)
    with os.fdopen(read) as pipe, os.fdopen(held):
        said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not said:
        raise Refused(f"auto_complete_config ended its process with status {status}")
    kind, text = json.loads(said)
    if kind == "raised":
        raise Refused(text)
    return str(text)


def _say(descriptor: int, act: Callable[[], str]) -> None:
    try:
        said = ["returned", act()]
    except BaseException as error:  # SystemExit as well
        said = ["raised", describe(error)]
    with os.fdopen(descriptor, "w") as pipe:
        json.dump(said, pipe)
    os._exit(0)
