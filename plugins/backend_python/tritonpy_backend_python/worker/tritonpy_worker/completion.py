"""Completion of a configuration by a model's `auto_complete_config`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from .api.model_config import ModelConfig
from .failure import ModelContractError, describe_error
from .fork_safety import fork
from .ipc.parent_watch import ParentWatcher


def complete(module: Any, name: str, config: str) -> str:
    """Return the configuration, as JSON text, after the model's class completed it.

    Raises `ModelContractError`, and exceptions of the model.
    """
    completed = ModelConfig(config)
    if hasattr(module.TritonPythonModel, "auto_complete_config"):
        completed = module.TritonPythonModel.auto_complete_config(completed)
    if not isinstance(completed, ModelConfig):
        raise ModelContractError(
            f"auto_complete_config function in model '{name}' must return a valid pb.ModelConfig "
            "object."
        )
    return json.dumps(completed.as_dict())


def run_in_fork(act: Callable[[], str]) -> str:
    """Call `act` in a forked process and return its result.

    Raises `ModelContractError` with the text of its exception, or with the exit status of the
    process if there is no result.
    """
    read, write = os.pipe()
    tied, held = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(read)
        os.close(held)
        ParentWatcher(write).watch_pipe(tied)
        _write_result(write, act)
    os.close(write)
    os.close(tied)
    with os.fdopen(read) as pipe, os.fdopen(held):
        result = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not result:
        raise ModelContractError(f"auto_complete_config ended its process with status {status}")
    kind, text = json.loads(result)
    if kind == "raised":
        raise ModelContractError(text)
    return str(text)


def _write_result(descriptor: int, act: Callable[[], str]) -> None:
    try:
        result = ["returned", act()]
    except BaseException as error:  # including SystemExit
        result = ["raised", describe_error(error)]
    with os.fdopen(descriptor, "w") as pipe:
        json.dump(result, pipe)
    os._exit(0)
