"""What a backend says of a model before it is loaded, asked in a process of its own.

These are the configuration that it completes, and the instance groups that it prefers. The library
of a backend may crash. A model that runs in worker processes is therefore also completed outside of
the server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from typing import Any, cast

import msgspec

from tritonpy import Engine, Internal, ModelContext, Unavailable, error_of
from tritonpy.config import config_from_json, config_to_dict
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.model import CModel, PreferredGroup, find_library, preferred_groups
from tritonpy_backend_c.options import CBackendOptions

_PREFER = "TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup"
# By backend, path of the library, its change and size, and the backend's settings.
_groups: dict[tuple[str, str, int, int, str], list[PreferredGroup]] = {}


class CompletionTask(msgspec.Struct):
    """What the process needs to know of a model; it prints a `CompletionResult`."""

    name: str
    version: int
    config: dict[str, Any]
    directory: str
    path: str
    backend_directory: str | None
    settings: dict[str, str]
    default_max_batch_size: int
    asks_groups: bool


class CompletionResult(msgspec.Struct):
    """The configuration that the backend set, as JSON, or its preferred groups, or an error."""

    config: str | None = None
    groups: list[PreferredGroup] = []
    code: int = -1
    message: str = ""


def completed_config(model: ModelContext) -> str | None:
    """Return the configuration that the backend sets, as JSON; None if it changes nothing.

    Raises the backend's error, `Internal` if the process ends in another way, and `Unavailable` if
    the load is canceled.
    """
    return _ask(model, asks_groups=False).config


def preferred_groups_of(model: ModelContext) -> list[PreferredGroup]:
    """Return the instance groups that the backend prefers. Raises as `completed_config` does.

    The process starts once for each version of a library, if it calls the function at all.
    """
    path = find_library(model).resolve()
    file, options = path.stat(), model.options
    settings = repr(options) if isinstance(options, CBackendOptions) else ""
    key = (model.config.backend, str(path), file.st_mtime_ns, file.st_size, settings)
    if key not in _groups:
        has_groups = _PREFER in read_library(path).undefined
        _groups[key] = _ask(model, asks_groups=True).groups if has_groups else []
    return _groups[key]


def _ask(model: ModelContext, asks_groups: bool) -> CompletionResult:
    options = model.options
    environment = options.environment if isinstance(options, CBackendOptions) else {}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __package__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    with model.cancellation.calling(partial(_kill, process)), process:
        output, _ = process.communicate(msgspec.json.encode(_task(model, asks_groups)))
    if model.cancellation.canceled:
        raise Unavailable(model.cancellation.reason)
    try:
        # The backend may print, too: the result is the last line.
        result = msgspec.json.decode(output.rpartition(b"\n")[2], type=CompletionResult)
    except msgspec.DecodeError:
        status = process.returncode
        ended = signal.Signals(-status).name if status < 0 else f"status {status}"
        raise Internal(
            f"the backend '{model.config.backend}' ended the process that completes the "
            f"configuration of model '{model.name}' ({ended})"
        ) from None
    if result.code >= 0:
        raise error_of(result.code, result.message)
    return result


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _task(model: ModelContext, asks_groups: bool) -> CompletionTask:
    options = model.options
    return CompletionTask(
        model.name,
        model.version,
        config_to_dict(model.config),
        str(model.directory),
        str(model.path),
        None if model.backend_directory is None else str(model.backend_directory),
        dict(options.settings) if isinstance(options, CBackendOptions) else {},
        model.default_max_batch_size,
        asks_groups,
    )


class _NoEngine:
    """The engine of a process that only completes a configuration."""

    def __getattr__(self, _name: str) -> Any:
        raise Unavailable("other models cannot be used while a configuration is completed")


def complete(text: bytes) -> CompletionResult:
    """Complete the configuration of the model that `text` describes."""
    import logging
    from pathlib import Path

    from tritonpy import TritonError

    task = msgspec.json.decode(text, type=CompletionTask)
    config = config_from_json(json.dumps(task.config), "the model's configuration")
    model = ModelContext(
        name=task.name,
        version=task.version,
        config=config,
        directory=Path(task.directory),
        path=Path(task.path),
        parameters={},
        output_types={},
        options=CBackendOptions(settings=task.settings),
        engine=cast(Engine, _NoEngine()),
        log=logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {}),
        default_max_batch_size=task.default_max_batch_size,
        backend_directory=None if task.backend_directory is None else Path(task.backend_directory),
    )
    try:
        if task.asks_groups:
            return CompletionResult(groups=preferred_groups(model))
        opened = CModel(model, completes=True)
        result = CompletionResult(opened.changed_config())
        opened.close()
    except TritonError as error:
        return CompletionResult(code=int(error.code), message=error.message)
    return result
